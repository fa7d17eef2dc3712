package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/pluginkit"
)

type pluginInitOptions struct {
	app      *app
	language choice
	dir, sdk string
}

func (a *app) pluginInitCmd() *cobra.Command {
	o := &pluginInitOptions{app: a, language: newChoice(pluginkit.Languages()...)}
	cmd := &cobra.Command{
		Use:   "init NAME --lang " + o.language.Type(),
		Short: "Write a small tool that works",
		Long: `Write a small tool that works, into a new folder: its program, a Tool manifest
and a README with the commands to build, call and test it. It counts words until
you make it do something else.

go, python and node are plugins: one process answers all calls of a run. shell is
a program that is started for each call. A tool in Go comes with the SDK's source in
the folder sdk; --sdk uses that of a clone of agentctl instead.

Exit code 0: written. 2: the command line is wrong, or the folder is not empty.`,
		Example: `  agentctl plugin init issues --lang python
  agentctl plugin init issues --lang node --dir tools/issues
  agentctl plugin init issues --lang go`,
		Args: oneArg("the tool's name"),
		RunE: func(_ *cobra.Command, args []string) error { return o.runPluginInit(args[0]) },
	}
	cmd.Flags().Var(&o.language, "lang", "language of the tool: "+o.language.list())
	_ = cmd.RegisterFlagCompletionFunc("lang", o.language.complete) // fails only for a flag that is not there
	cmd.Flags().StringVar(&o.dir, "dir", "", "`folder` to write (default one of the tool's name)")
	cmd.Flags().StringVar(&o.sdk, "sdk", "", "`folder` with a clone of agentctl's source, for a tool in Go")
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagDirname("sdk")
	return cmd
}

func (o *pluginInitOptions) runPluginInit(name string) error {
	files, err := pluginkit.Init(pluginkit.InitOptions{Name: name, Language: o.language.value, Dir: o.dir, SDK: o.sdk})
	if err != nil {
		return err
	}
	if err := display.Begun(o.app.stdout(), files); err != nil {
		return fmt.Errorf("write the list of files: %w", err)
	}
	return nil
}
