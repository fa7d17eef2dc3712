package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
)

type lockOptions struct {
	app    *app
	files  []string
	file   string
	check  bool
	output choice

	allowUnsandboxed bool
	containerd       string
}

func (a *app) lockCmd() *cobra.Command {
	o := &lockOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "lock -f FILE|FOLDER|-",
		Short: "Pin what manifests name but do not hold",
		Long: `Pin what the agents of manifests use and the manifests do not hold, in agentctl.lock
beside them: models and their prices, programs, images, skills, and what plugins and MCP
servers describe, for which they are started, contained as their manifests demand.

"agentctl run --locked" does not begin a run that would use something else, and --check
compares all of it: both report what has moved.

Exit code 0: the lock was written, or with --check nothing has moved. 1: a program could
not be asked. 2: the manifests hold a mistake, the lock is damaged, or with --check
something has moved. 8: this host does not support the isolation that a tool requires.`,
		Example: `  agentctl lock -f agents
  agentctl lock -f agents --check
  agentctl run -f agents --locked`,
		GroupID: groupManifest,
		Args:    filesOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.runLock(cmd.Context()) },
	}
	files(cmd, &o.files)
	lockFile(cmd, &o.file)
	cmd.Flags().BoolVar(&o.check, "check", false, "compare with the lock, and write nothing")
	cmd.Flags().BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "start programs that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	a.stateFlag(cmd)
	output(cmd, &o.output, "format: what has moved, or one object")
	return cmd
}

// lockFile adds --lock-file.
func lockFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "lock-file", "", "`file` with the lock (default agentctl.lock beside the manifests)")
	_ = cmd.MarkFlagFilename("lock-file", "lock") // fails only for a flag that is not there
}

func (o *lockOptions) runLock(ctx context.Context) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	locked, err := connect.Lock(ctx, connect.LockOptions{
		Paths: o.files, Stdin: o.app.In, File: o.file, Check: o.check, State: o.app.state, AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd,
	})
	if locked == nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		return errors.Join(display.WriteObject(o.app.stdout(), locked), err)
	}
	for _, name := range locked.Unpinned {
		display.Notice(o.app.stderr(), "the functions of tool "+name+" are not pinned: only a run can ask its server")
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %d objects", locked.File, locked.Objects)
	for _, c := range locked.Changes {
		text += "\n  " + display.Line(c.String())
	}
	return display.Text(o.app.stdout(), text)
}
