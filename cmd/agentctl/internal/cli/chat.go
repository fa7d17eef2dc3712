package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/cmd/agentctl/internal/lineedit"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/runs"
)

func (a *app) chatCmd() *cobra.Command {
	o := &runOptions{app: a, target: target{app: a}, output: newChoice(display.FormatText), ci: newChoice("none")}
	cmd := &cobra.Command{
		Use:   "chat -f FILE|FOLDER [agent/NAME] | chat RUN",
		Short: "Talk with an agent",
		Long: `Talk with an agent on a terminal: each line is a prompt, and a turn of one run.

With -f a conversation begins with the first prompt; agent/NAME or --agent chooses
among several agents. With RUN a run that has ended goes on, after what was said in it.
The rules, the files and the journal are those of "agentctl run --continue": each
turn reads the manifests again, has its own limits, and is judged by their policies.

Enter sends what is written; Ctrl-J, Alt-Enter, or a backslash before Enter makes
another line. What is pasted may have many lines, and is data: "@" and "!" in it mean
nothing. Tab completes files and agents behind "@", and commands behind "/". What is
entered while the agent works is the next prompt.

Questions are asked where they come up, as "agentctl run" does. Ctrl-C ends the turn,
not the chat; Ctrl-D on an empty line ends the chat. /help lists the commands. Earlier
lines are kept in the file chat_history of the state folder, for its owner alone.

Without a terminal use "agentctl run".

Exit codes: 0 the chat has ended; 2 the manifests or the run cannot be used, or there
is no terminal; 143 a signal ended it.`,
		Example: `  agentctl chat -f manifests/fixer
  agentctl chat -f agents agent/plan --workspace ~/src/repo
  agentctl chat @latest
  agentctl chat run/fixer-01k`,
		GroupID: groupRun,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("unexpected argument %q: a chat has one agent, or goes on with one run", args[1])
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.completeEnded(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.chats(args); err != nil {
				return err
			}
			return o.runChat(cmd)
		},
	}
	o.chatFlags(cmd)
	return cmd
}

func (o *runOptions) chatFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	files(cmd, &o.files)
	f.StringVar(&o.agent, "agent", "", "`name` of the Agent to talk with, where there are several")
	f.StringVar(&o.model, "model", "", "`name` of the Model to use instead of the agent's")
	f.StringArrayVar(&o.inputs, "input", nil, "`key=value` the agent reads as ${inputs.key}; may be repeated")
	f.StringArrayVar(&o.policies, "policy", nil, "`name` of a Policy that narrows the turns and every run their subagents begin; may be repeated")
	noRepositoryPolicies(cmd, &o.noRepository)
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work on (default the Run's, else the current folder)")
	f.BoolVar(&o.inPlace, "in-place", false, "work on the folder itself instead of a copy")
	approve(cmd, &o.approve)
	f.DurationVar(&o.timeout, "timeout", 0, "end a turn after this time, if its limits do not end it sooner")
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
}

// chats reads what the chat is with.
func (o *runOptions) chats(args []string) error {
	if len(args) == 1 {
		if name, ok := agentName(args[0]); ok {
			switch {
			case name == "" || strings.Contains(name, "/"):
				return usagef("%q names no agent", args[0])
			case len(o.files) == 0:
				return reason.Usagef("%s without manifests is an agent of a control plane, whose runs take no other turn", args[0]).WithHint("name the manifests with -f, or ask once: agentctl run " + args[0] + " -p TEXT")
			case o.agent != "" && o.agent != name:
				return usagef("%s and --agent %s are two agents", args[0], o.agent)
			}
			o.agent = name
		} else {
			o.continues = args[0]
		}
	}
	switch {
	case o.continues == "" && len(o.files) == 0:
		return usagef("say with whom: -f FILE or -f FOLDER begins a conversation, a RUN goes on")
	case len(o.files) > 0 && slices.Contains(o.files, "-"):
		return usagef("-f -: stdin is where a chat is written")
	}
	return nil
}

// chat is a conversation on a terminal.
type chat struct {
	*runOptions
	cmd  *cobra.Command
	term *lineedit.Terminal
	// base are the options of every turn.
	base runner.RunOptions
	// run is the conversation so far; nil before its first turn.
	run *view.Run
	// place is where the next prompt begins a new run, as moment.Find takes it; nil: it
	// is another turn.
	place *string
	// known are the manifests, for completion; nil until they are needed.
	known *manifestNames
}

func (o *runOptions) runChat(cmd *cobra.Command) error {
	a := o.app
	in, isIn := a.In.(*os.File)
	out, isOut := a.Out.(*os.File)
	if !isIn || !isOut || !isTerminal(a.In) || !isTerminal(a.Out) {
		return reason.Usagef("a chat needs a terminal as standard input and output").WithHint("ask once with: agentctl run -f FOLDER -p TEXT, and go on with: agentctl run --continue @latest -p TEXT")
	}
	c := &chat{runOptions: o, cmd: cmd}
	if err := c.prepare(cmd.Context()); err != nil {
		return err
	}
	history, err := openHistory(c.base.State)
	if err != nil {
		display.Error(a.stderr(), err, display.Advice{})
	}
	defer history.close()
	color := a.stderr()
	term, err := lineedit.Open(in, out, a.getenv, lineedit.Options{
		Prompt: "> ", Answer: "answer> ", History: history.lines, Complete: c.complete,
		Dim: func(text string) string { return display.Dimmed(color, text) },
	})
	if errors.Is(err, lineedit.ErrNoTerminal) {
		return reason.Usagef("%w", err).WithHint("ask once with: agentctl run -f FOLDER -p TEXT")
	}
	if err != nil {
		return err
	}
	c.term = term
	defer term.Close()
	a.Out, a.Err, a.columns = term, term, term.Columns
	c.base.Telemetry = a.openTelemetry()
	defer a.closeTelemetry(cmd.Context(), c.base.Telemetry)
	if c.run != nil {
		if err := display.Conversation(a.stdout(), display.Place{State: a.state}, c.run); err != nil {
			return err
		}
	}
	return c.talk(cmd.Context(), history)
}

// prepare turns the flags into the options of the turns.
func (c *chat) prepare(ctx context.Context) error {
	c.said = "a prompt of the chat" // each turn has its own
	ro, err := c.options(true, c.cmd.Flags().Changed("timeout"))
	if err != nil {
		return err
	}
	c.base = ro
	c.base.Verbatim, c.base.Authored, c.base.Prompt = false, true, ""
	if c.continues != "" {
		if c.run, err = runs.View(ctx, ro.State, c.continues); err != nil {
			return err
		}
		c.base.Continue = c.run.ID
		return nil
	}
	_, err = os.Stat(c.files[0])
	if err != nil {
		return usage(err)
	}
	return nil
}

// talk takes lines until there are no more.
func (c *chat) talk(ctx context.Context, history *history) error {
	for {
		l, err := c.term.Next(ctx)
		var sig lineedit.SignalError
		switch {
		case errors.As(err, &sig):
			return exit(128 + int(sig.Signal))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		history.add(l)
		if err := display.Text(c.app.stderr(), display.Asked(c.app.stderr(), l.Text)); err != nil {
			return err
		}
		if quit := c.take(ctx, l); quit {
			return nil
		}
	}
}

// take does what a line asks for, and reports whether it ends the chat.
func (c *chat) take(ctx context.Context, l lineedit.Line) (quit bool) {
	ro := c.base
	if word, rest, ok := slash(l); ok {
		name := word[1:]
		if s := c.slashes()[name]; s.do != nil {
			return s.do(ctx, rest)
		}
		if !slices.Contains(runner.Commands(c.paths()), name) {
			_ = display.Text(c.app.stderr(), "there is no "+display.Line(word)+": /help lists what there is")
			return false
		}
		ro.Command, ro.Arguments, ro.Authored = name, strings.Fields(rest), false
	} else {
		ro.Prompt = l.Text
		for _, s := range l.Pasted {
			ro.Data = append(ro.Data, runner.Span{From: s.From, To: s.To})
		}
	}
	c.turn(ctx, ro)
	return false
}

// turn executes a turn and shows it.
func (c *chat) turn(ctx context.Context, ro runner.RunOptions) {
	a := c.app
	defer c.term.Work()()
	asker := c.term.Asker()
	defer asker.Close()
	ro.Agent, ro.Model = c.agent, c.model
	ro.Terminal = &runner.Terminal{In: asker, Out: asker}
	var past *view.Run
	if ro.Continue != "" && c.place == nil { // events speak of what was said before; what is wrong with the run is for Run to say
		past, _ = runs.View(ctx, ro.State, ro.Continue)
	}
	shown := display.NewRun(display.FormatText, a.stdout(), a.stderr(), display.RunOptions{
		Asks: true, Chat: true, Place: display.Place{State: a.state}, Past: past,
	})
	ctx, signals := watch(ctx, func(n int) {
		if n == 1 {
			shown.Notice(stopping)
		} else {
			shown.Notice("killing")
		}
	})
	defer signals.stop()
	ro.Events, ro.Children, ro.Kill, ro.Cloning = shown.Event, shown.Child, signals.kill, shown.Notice
	forks := c.place != nil
	outcome, err := c.execute(ctx, ro, shown)
	signals.stop()
	if err != nil {
		_ = a.report(c.cmd, err)
		if forks {
			c.tell("nothing was forked: the next prompt goes on with run/" + c.run.ID)
		}
		return
	}
	c.run, c.base.Continue = outcome.Run, outcome.Run.ID
	c.base.Workspace, c.base.InPlace, c.base.Inputs = "", false, nil // a run keeps them
	_ = a.showEnd(shown, outcome)                                    // a terminal that is gone ends the chat
}

// execute executes a turn: of the run, or of a fork of it.
func (c *chat) execute(ctx context.Context, ro runner.RunOptions, shown display.Renderer) (*runner.Outcome, error) {
	if c.place == nil {
		return runner.Run(ctx, ro)
	}
	fork := runner.ForkOptions{RunOptions: ro, Ref: ro.Continue, At: *c.place, Begun: func(id, text string) {
		begun(ctx, ro.State, id, text, shown.SetPast, shown.Notice)
	}}
	fork.Continue, c.place = "", nil
	return runner.Fork(ctx, fork)
}

// paths are where the manifests of the chat are.
func (c *chat) paths() []string {
	if len(c.files) > 0 || c.run == nil {
		return c.files
	}
	return runner.PathsOf(c.base.State, c.run.ID)
}
