package cli

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

type approveOptions struct {
	target
	approve bool
	always  bool
	reason  string
	endRun  bool
	// text answers the question of a running call; nil is not given.
	text   *string
	output choice
}

func (a *app) approveCmd() *cobra.Command {
	o := &approveOptions{target: target{app: a}, approve: true, output: newChoice(display.FormatText, display.FormatJSON)}
	var answer string
	cmd := &cobra.Command{
		Use:   "approve [RUN/CALL | APPROVAL]",
		Short: "Let a waiting call run or answer its question, or list what waits",
		Long: `Let a call run that waits for an approval. Without a name, list every call that
waits, in all runs, with everything that is known about it.

A call is named RUN/CALL: the run as "agentctl help names" says, the call by its id
or the start of it. The run alone is enough when one call waits. A call of a control
plane is also named by its Approval, as "agentctl get approvals" lists them.

A run that waits (approvals.onAsk: Wait, or a prompt on its terminal) continues at
once. For one that is suspended or was killed the answer is kept for 24 hours:
"agentctl resume" takes it. An approval counts once, for exactly the call that
was shown: if its arguments, its tool, the rule that asks or what it would touch
have changed, there is a new question.

A call that runs may ask a question of its own. --answer gives the answer: a text,
or one of the options by its text or its number. "agentctl deny" refuses to answer.
Only a run in progress takes an answer.

With --always calls of this kind are approved for the rest of the run, as far as
the listing says; stdout then holds the same as a policy that you may keep.

Exit codes: 0 the answer was taken, or kept for a resume; 1 the call was answered
or has ended already, or its run did not take the answer; 2 the call does not exist.`,
		Example: `  agentctl approve
  agentctl approve @latest
  agentctl approve hello-01k/call_1 --always > remembered.yaml
  agentctl approve @latest --answer "the staging database"
  agentctl approve --context prod
  agentctl approve --context prod nightly-76fd0864b97f --reason "checked by hand"
  agentctl approve -o json`,
		GroupID:           groupRun,
		Args:              atMostOneCall,
		ValidArgsFunction: a.completeWaiting,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("answer") {
				o.text = &answer
			}
			if len(args) == 0 {
				if o.always || o.text != nil || cmd.Flags().Changed("reason") {
					return usagef("the call (RUN/CALL) is missing")
				}
				return o.list(cmd.Context())
			}
			return o.runApprove(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.always, "always", false, "approve calls of this kind for the rest of the run")
	cmd.Flags().StringVar(&o.reason, "reason", "", "a `text` for the journal")
	cmd.Flags().StringVar(&answer, "answer", "", "a `text` or an option that answers the question of a running call")
	_ = cmd.RegisterFlagCompletionFunc("answer", cobra.NoFileCompletions) // fails only for a flag that is not there
	o.flags(cmd)
	return cmd
}

func (o *approveOptions) flags(cmd *cobra.Command) {
	output(cmd, &o.output, "what stdout holds: text, or JSON")
	o.target.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.NoFileCompletions) // fails only for a flag that is not there
}

func atMostOneCall(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("unexpected argument %q: one call is answered at a time", args[1])
	}
	return nil
}

// ofObject reports whether a control plane executes a run, and continues it by itself.
func ofObject(run string) bool {
	_, ok := objectOf(run)
	return ok
}

// objectOf is the name of the Run object of a run that a control plane executes.
// The id of such a run is NAME-UID, perhaps with the attempt.
func objectOf(run string) (name string, ok bool) {
	parts := strings.Split(run, "-")
	for _, end := range []int{len(parts), len(parts) - 1} {
		if end < 6 {
			return "", false
		}
		shaped := true
		for i, n := range []int{8, 4, 4, 4, 12} {
			part := parts[end-5+i]
			shaped = shaped && len(part) == n && strings.Trim(part, "0123456789abcdef") == ""
		}
		if shaped {
			return strings.Join(parts[:end-5], "-"), true
		}
	}
	return "", false
}

// runApprove gives the answer: in the state folder where the journal of the run is
// there, else at the control plane that has it.
func (o *approveOptions) runApprove(ctx context.Context, word string) error {
	r, err := parseCall(word)
	if err != nil {
		return err
	}
	src, err := o.locate(ctx, r)
	if err != nil && !r.approval && r.call == "" && r.name == word {
		// A word alone may be the name of an Approval as well.
		if asking, missing := o.locate(ctx, runRef{word: word, name: word, approval: true}); missing == nil {
			src, err, r.approval = asking, nil, true
		}
	}
	if err != nil {
		return o.none(ctx, word, err)
	}
	defer src.close()
	switch {
	case src.client == nil || src.id != "" && !r.approval && !o.named():
		return o.answer(ctx, src.id+"/"+r.call)
	case r.approval:
		return o.answerObject(ctx, src.client, r.name)
	}
	return o.answerObject(ctx, src.client, "run/"+src.run.Name+"/"+r.call)
}

// none is the error for a call of a run that is nowhere: it names those that wait.
// What else is wrong is the error itself.
func (o *approveOptions) none(ctx context.Context, ref string, err error) error {
	if unknown, is := errors.AsType[*reason.UsageError](err); !is && !client.Missing(err) || is && (unknown.Hint != "" || strings.HasPrefix(ref, "@") || o.several(ref)) {
		return err
	}
	hint := "no call waits now; agentctl approve lists those that do"
	if calls, err := o.waiting(ctx); err == nil && len(calls) > 0 {
		names := make([]string, len(calls))
		for i := range calls {
			names[i] = calls[i].Ref
		}
		hint = "these wait: " + listed(names)
	}
	return reason.Usagef("no call waits that is called %s", ref).WithHint(hint)
}

// several reports whether a word begins the ids of runs of the state folder.
func (o *approveOptions) several(word string) bool {
	r, err := parseCall(word)
	return err == nil && o.known(r.name)
}

// named reports whether flags name a control plane.
func (o *approveOptions) named() bool { return o.context != "" || o.namespace != "" }

// answer answers a call of a run in the state folder.
func (o *approveOptions) answer(ctx context.Context, ref string) error {
	answered, err := runs.Answer(ctx, runs.AnswerOptions{
		Ref: ref, State: o.app.state, Approve: o.approve, Always: o.always, Reason: o.reason, EndRun: o.endRun, Answer: o.text, By: who(o.app.In),
	})
	if err != nil {
		return err
	}
	next := display.Resume(answered.Run, o.app.state)
	if ofObject(answered.Run) {
		next = ""
	}
	return o.show(answered, next)
}

// show reports the result of an answer, and the command that gives it to a run
// that has not taken it.
func (o *approveOptions) show(answered *runs.Answered, next string) error {
	shown := display.Answered{
		Ref: answered.Ref, Tool: answered.Tool, State: string(answered.State), Taken: answered.Taken, Answer: answered.Answer, Policy: answered.Policy, Next: next, Object: answered,
	}
	if o.output.value == display.FormatJSON {
		return shown.WriteJSON(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout(), o.app.stderr())
}

// list shows what waits.
func (o *approveOptions) list(ctx context.Context) error {
	if o.named() {
		calls, err := o.waitingObjects(ctx)
		if err != nil {
			return err
		}
		return o.write(calls)
	}
	calls, err := o.waiting(ctx)
	if err != nil {
		return err
	}
	return o.write(calls)
}

// waiting are the calls that wait here, and there where the environment names that.
func (o *approveOptions) waiting(ctx context.Context) ([]runs.WaitingCall, error) {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return nil, err
	}
	calls, err := runs.Waiting(ctx, state)
	if err != nil || !o.meant() {
		return calls, err
	}
	more, err := o.waitingObjects(ctx)
	return append(calls, more...), err
}

func (o *approveOptions) write(calls []runs.WaitingCall) error {
	if o.output.value == display.FormatJSON {
		return display.Object(o.app.stdout(), calls)
	}
	shown := make([]display.Waiting, len(calls))
	for i := range calls {
		w := &calls[i]
		shown[i] = display.Waiting{
			Ref: w.Ref, Agent: w.Agent, State: w.State, Left: string(w.Left), AskedAt: w.AskedAt, ExpiresAt: w.ExpiresAt,
			Call: w, Resume: display.Resume(w.Run, o.app.state), Answer: display.Approve(w.Ref, o.app.state),
		}
		if w.Question != nil {
			shown[i].Answer = display.AnswerQuestion(shown[i].Answer)
		}
		if ofObject(w.Run) {
			shown[i].Resume = ""
		}
		if !strings.Contains(w.Ref, "/") { // an object: its run continues by itself
			shown[i].Resume, shown[i].Answer = "", display.ApproveObject(w.Ref, o.context, o.namespace)
			if w.Question != nil {
				shown[i].Answer = display.AnswerQuestion(shown[i].Answer)
			}
		}
	}
	return display.WaitingList(o.app.stdout(), shown)
}

// completeWaiting offers the calls that wait.
func (a *app) completeWaiting(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	state, err := statedir.Find(a.state)
	if err != nil || len(args) > 0 {
		return nil, directive
	}
	if cmd.Flags().Changed("context") || cmd.Flags().Changed("namespace") {
		return a.waitingNames(cmd), directive
	}
	calls, err := runs.Waiting(cmd.Context(), state)
	if err != nil {
		return nil, directive
	}
	var refs []string
	for i := range calls[:min(len(calls), maxCompletions)] {
		about := calls[i].Rule
		if q := calls[i].Question; q != nil {
			about = "question: " + display.Line(q.Text)
		}
		refs = append(refs, calls[i].Ref+"\t"+calls[i].Tool+", "+about)
	}
	return append(refs, a.waitingNames(cmd)...), directive
}

// who is the person at this terminal, as the journal will name them.
func who(in any) string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if tty, err := os.Readlink("/proc/self/fd/0"); err == nil {
			return name + "@" + strings.TrimPrefix(tty, "/dev/")
		}
		return name + "@terminal"
	}
	return name + "@agentctl"
}
