// Package cli is the command line of agentctl: one file per verb around package runner.
//
// A verb is an xxxOptions struct, an xxxCmd that declares flags and help, and a
// runXxx that does it. Verbs print nothing themselves; package display does.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

// Streams are what the program reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what all verbs share.
type app struct {
	Streams
	getenv func(string) string
	color  choice
	state  string
	// columns is set while the streams are those of a chat, which shares its terminal with
	// them: how many cells a line has.
	columns func() int
}

// Main runs one command line and returns the exit code.
func Main(args []string, s Streams) (code int) {
	defer func() {
		// Left alone, a panic would exit with 2, the code of a usage error.
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(s.Err, "error: agentctl failed: %v\nhint: this is a defect of agentctl; please report it with what follows\n%s", p, debug.Stack())
			code = reason.ExitFailed
		}
	}()
	a := &app{Streams: s, getenv: os.Getenv, color: newChoice(display.ColorAuto, display.ColorAlways, display.ColorNever)}
	root := a.rootCmd()
	if err := misplaced(root, args); err != nil {
		return a.report(root, err)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	return a.report(cmd, err)
}

// Command is the command tree, for what describes it; Main runs it.
func Command() *cobra.Command {
	a := &app{getenv: func(string) string { return "" }, color: newChoice(display.ColorAuto, display.ColorAlways, display.ColorNever)}
	return a.rootCmd()
}

func (a *app) stdout() *display.Screen { return a.screen(a.Out) }
func (a *app) stderr() *display.Screen { return a.screen(a.Err) }

func (a *app) screen(w io.Writer) *display.Screen {
	if a.columns != nil {
		return display.OnTerminal(w, a.columns, a.color.value, a.getenv)
	}
	return display.NewScreen(w, a.color.value, a.getenv)
}

func (a *app) rootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentctl",
		Short: "Run agents that are declared as manifests",
		Long: `agentctl runs agents that are declared as Kubernetes-style manifests. Every tool
call is judged by a policy, runs outside this program and is written to a journal.`,
		Example: `  agentctl run -f manifests/hello          run the agent in a folder
  agentctl validate -f manifests/hello     report every mistake in the manifests
  agentctl explain agent.spec.limits       what a field means
  agentctl help exit-codes                 what the exit codes mean
  agentctl help names                      how a run is named`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          func(cmd *cobra.Command, args []string) error { return misplaced(cmd, args) },
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(display.Output(a.Out))
	root.SetErr(display.Output(a.Err))
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.PersistentFlags().Var(&a.color, "color", "when to use colour: "+a.color.list())
	_ = root.RegisterFlagCompletionFunc("color", a.color.complete) // fails only for a flag that is not there
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Agents and their runs:"},
		&cobra.Group{ID: groupObject, Title: "Objects of a control plane:"},
		&cobra.Group{ID: groupManifest, Title: "Manifests:"},
	)
	root.AddCommand(
		a.runCmd(), a.chatCmd(), a.attachCmd(), a.logsCmd(), a.eventsCmd(), a.sendCmd(), a.cancelCmd(), a.resumeCmd(), a.replayCmd(), a.getCmd(), a.approveCmd(), a.denyCmd(), a.diffCmd(), a.applyChangesCmd(), a.revertCmd(), a.forkCmd(), a.exportCmd(), a.auditCmd(),
		a.applyCmd(), a.describeCmd(), a.editCmd(), a.deleteCmd(), a.waitCmd(), a.labelCmd(), a.annotateCmd(),
		a.apiResourcesCmd(), a.configCmd(),
		a.initCmd(), a.validateCmd(), a.lockCmd(), a.testCmd(), a.policyCmd(), a.authCmd(), a.modelsCmd(), a.pluginCmd(), a.mcpCmd(), a.imageCmd(), a.explainCmd(), a.schemaCmd(),
		a.demoCmd(), a.doctorCmd(), a.versionCmd(), a.exitCodesTopic(), a.namesTopic(),
	)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = subcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// help shows the help of a command as the terminal is wide.
func (a *app) help(cmd *cobra.Command, _ []string) {
	usage := ""
	if cmd.Runnable() || cmd.HasSubCommands() {
		usage = cmd.UsageString()
	}
	_ = display.Help(a.stdout(), cmp.Or(cmd.Long, cmd.Short), usage) // the error cannot be shown
}

const (
	groupRun      = "run"
	groupManifest = "manifest"
)

// misplaced recognises a first word that is not a command: a manifest somebody
// wants to run, or a slip of the pen.
func misplaced(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__") {
		return nil
	}
	word := args[0]
	known := []string{"help", "completion"}
	for _, c := range root.Commands() {
		known = append(append(known, c.Name()), c.Aliases...)
	}
	if word == "help" && len(args) > 1 {
		return unknownTopic(root, args[1])
	}
	if slices.Contains(known, word) {
		return nil
	}
	if isManifest(word) {
		return usagef("%q is a manifest, not a command", word).try("agentctl run -f " + strings.Join(args, " "))
	}
	err := usagef("unknown command %q", word)
	if s := reason.Nearest(word, known); s != "" {
		return err.try(strings.Join(append([]string{"agentctl", s}, args[1:]...), " "))
	}
	return err
}

// unknownTopic refuses what cobra would answer with help and exit code 0.
func unknownTopic(root *cobra.Command, topic string) error {
	for _, c := range root.Commands() {
		if c.Name() == topic {
			return nil
		}
	}
	if topic == "help" || topic == "completion" || strings.HasPrefix(topic, "-") {
		return nil
	}
	return usagef("there is no help for %q", topic)
}

func isManifest(word string) bool {
	for _, end := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	_, err := os.Stat(word)
	return err == nil
}
