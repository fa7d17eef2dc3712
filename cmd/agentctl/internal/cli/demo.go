package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/templates"
)

type demoOptions struct {
	app    *app
	output choice
}

func (a *app) demoCmd() *cobra.Command {
	o := &demoOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "demo [NAME]",
		Short: "Run a demo that needs no key",
		Long: `Run a demo that needs no key and no network: only the model is scripted, the policy,
the sandbox and the journal are those of every run. Without a name the demos are
listed.

The manifests and files are written to a temporary folder, which is named and stays.
The run is in the state folder: "agentctl describe run/ID" shows it again.

Exit code 0: the demo ended as it should, whatever the exit code of its run is. 8: this
host gives no sandbox; "agentctl doctor" says why.`,
		Example: `  agentctl demo
  agentctl demo caught      # allowed commands do more than they say
  agentctl demo lied        # "all tests pass", and they do not
  agentctl demo fork        # a run that failed in CI goes on here`,
		GroupID:           groupRun,
		Args:              demoArgs,
		ValidArgsFunction: completeDemos,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runDemo(cmd.Context(), args) },
	}
	a.stateFlag(cmd)
	output(cmd, &o.output, "format of the list: a table, or one object")
	return cmd
}

func demoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return usagef("unexpected argument %q after the demo", args[1])
	case len(args) == 1 && cmd.Flags().Changed("output"):
		return usagef("-o is for the list of demos")
	}
	return nil
}

func completeDemos(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, d := range templates.Demos() {
		if len(args) == 0 {
			names = append(names, d.Name+"\t"+d.Does)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// demoList is what programs read of the demos.
type demoList struct {
	Demos []templates.Demo `json:"demos"`
}

func (o *demoOptions) runDemo(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return o.list()
	}
	demo, dir, err := templates.WriteDemo(args[0])
	if err != nil {
		return err
	}
	if err := display.DemoBegins(o.app.stdout(), demo.Name, demo.Does); err != nil {
		return fmt.Errorf("write what the demo is about: %w", err)
	}
	err = o.execute(ctx, demo, dir)
	code, ended := errors.AsType[exitError](err)
	if err == nil && demo.ExitCode != reason.ExitOK {
		err = fmt.Errorf("the demo %s ended with exit code 0, and should not: %s shows why", demo.Name, "agentctl describe run/@latest")
	}
	if err != nil && (!ended || int(code) != demo.ExitCode) {
		_ = os.RemoveAll(dir) // it has shown nothing
		return err
	}
	if demo.Fork != nil {
		if err := o.fork(ctx, demo.Fork, dir); err != nil {
			return err
		}
	}
	if err := display.DemoEnds(o.app.stdout(), demo.Shown, dir); err != nil {
		return fmt.Errorf("write what the demo has shown: %w", err)
	}
	return nil
}

// execute executes the run of a demo.
func (o *demoOptions) execute(ctx context.Context, demo *templates.Demo, dir string) error {
	run := &runOptions{
		app: o.app, target: target{app: o.app}, output: newChoice(display.FormatText), ci: newChoice(string(ci.None)),
		files: within(dir, demo.Files), approve: "never",
	}
	if err := display.DemoCommand(o.app.stdout(), "run -f "+strings.Join(run.files, " -f ")+" --approve never"); err != nil {
		return err
	}
	return run.runRun(ctx, false, false)
}

// fork exports the run of a demo, and forks it from there.
func (o *demoOptions) fork(ctx context.Context, f *templates.DemoFork, dir string) error {
	file := filepath.Join(dir, "failed"+export.Suffix)
	if err := display.DemoCommand(o.app.stdout(), "export @latest "+file); err != nil {
		return err
	}
	x := &exportOptions{target: target{app: o.app}, output: newChoice(display.FormatText)}
	if err := x.runExport(ctx, []string{runs.Latest, file}); err != nil {
		return err
	}
	fork := &forkOptions{target: target{app: o.app}, output: newChoice(display.FormatText), at: f.At, files: within(dir, f.Files), workspace: filepath.Join(dir, "repo"), approve: "never"}
	if err := display.DemoCommand(o.app.stdout(), "fork "+file+" --at "+f.At+" -f "+strings.Join(fork.files, " -f ")+" --workspace "+fork.workspace+" --approve never"); err != nil {
		return err
	}
	return fork.runFork(ctx, file, false, false)
}

// within are the files of a folder; none are the folder.
func within(dir string, names []string) []string {
	if len(names) == 0 {
		return []string{dir}
	}
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = filepath.Join(dir, name)
	}
	return files
}

func (o *demoOptions) list() error {
	all := templates.Demos()
	var err error
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), demoList{all})
	} else {
		rows := make([][]string, len(all))
		for i, d := range all {
			rows[i] = []string{d.Name, d.Does}
		}
		err = display.Demos(o.app.stdout(), rows)
	}
	if err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return exit(reason.ExitOK)
}
