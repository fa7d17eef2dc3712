package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/pluginkit"
)

func (a *app) imageCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "image",
		Short:   "Make a container image of a tool",
		GroupID: groupManifest,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.imageBuildCmd())
	return cmd
}

type imageBuildOptions struct {
	app    *app
	labels []string
	output choice
	image  pluginkit.ImageOptions
}

func (a *app) imageBuildCmd() *cobra.Command {
	o := &imageBuildOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "build --from-binary FILE | --from-folder FOLDER",
		Short: "Make an OCI image of a tool's program, without Docker",
		Long: `Make an OCI image of a tool's program, without Docker, and print the reference
that belongs into spec.source.container.image of its Tool manifest.

The same files make the same image, with the same digest: times, owners and the
machine leave no trace in it. Without --base it holds the program and nothing
else, so the program has to be linked statically.

Without --push and --import the image is written to a file: a tar of an OCI
layout, which a Tool can name as it is. Plain HTTP is spoken to a registry on
this host only; credentials are those that "docker login" has stored.

Exit code 0: built and delivered. 2: the command line or the files are wrong.
8: containerd cannot be reached. 1: anything else.`,
		Example: `  agentctl image build --from-binary ./my-tool
  agentctl image build --from-binary ./my-tool --push registry.example.com/team/my-tool:1
  agentctl image build --from-binary ./my-tool --import
  agentctl image build --from-folder ./dist --entrypoint /bin/python3 --entrypoint /app/main.py --base python.tar`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runImageBuild(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.image.Program, "from-binary", "", "`file` that becomes the program of the image")
	f.StringVar(&o.image.Folder, "from-folder", "", "`folder` whose content becomes the file system of the image")
	f.StringArrayVar(&o.image.Entrypoint, "entrypoint", nil, "`word` of the command the image runs, first a path in it; may be repeated (default the program)")
	f.StringVar(&o.image.Base, "base", "scratch", "the base of the image: scratch, or the `path` of an OCI layout, perhaps with @sha256:... of one of its images")
	f.StringVar(&o.image.Architecture, "arch", "", "`architecture` in Go's words, such as arm64 (default that of the program)")
	f.StringArrayVar(&o.labels, "label", nil, "a `name=value` of the image; may be repeated")
	f.StringVar(&o.image.Output, "output-file", "", "`file` to write (default the name of the program with .oci.tar, here)")
	f.StringVar(&o.image.Push, "push", "", "`repository` to upload to, perhaps with a tag")
	f.BoolVar(&o.image.Import, "import", false, "hand the image to containerd on this host")
	for name, mark := range map[string]func(string) error{"from-folder": cmd.MarkFlagDirname, "from-binary": func(n string) error { return cmd.MarkFlagFilename(n) }} {
		_ = mark(name) // fails only for a flag that is not there
	}
	a.stateFlag(cmd)
	containerd(cmd, &o.image.Containerd)
	output(cmd, &o.output, "format: the reference, or one object")
	return cmd
}

func (o *imageBuildOptions) runImageBuild(parent context.Context) error {
	for _, l := range o.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return usagef("--label %q is not of the form name=value", l)
		}
		if o.image.Labels == nil {
			o.image.Labels = map[string]string{}
		}
		if _, twice := o.image.Labels[name]; twice {
			return usagef("--label %s is given twice", name)
		}
		o.image.Labels[name] = value
	}
	ctx, ended := stoppable(parent)
	o.image.State = o.app.state
	built, err := pluginkit.BuildImage(ctx, o.image)
	if err = ended(err); err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), built)
	} else {
		err = display.Reference(o.app.stdout(), built.Reference)
	}
	if err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	return nil
}
