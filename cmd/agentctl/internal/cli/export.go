package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/export"
)

type exportOptions struct {
	target
	exclude      []string
	git          bool
	withoutFiles bool
	force        bool
	output       choice
}

func (a *app) exportCmd() *cobra.Command {
	o := &exportOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "export run/ID [FILE]",
		Short: "Write a run with its files into one file, for another machine",
		Long: `Write a run into one file: its journal, those of its subagents, and its files as they
are now. On another machine the name of the file stands for the run: fork, diff,
describe, events, logs, get, policy and audit take it. The journal is written as it is,
so "agentctl audit verify FILE" still holds.

FILE is ID.tar.gz in the current folder by default, and must end in .tar.gz. It can be
read by its owner only.

Files whose names say that they hold secrets, such as .env, id_rsa or *.pem, are left out
and listed, and so are their contents at any step. If the value of a secret that this
machine knows would be in it, nothing is written and the places are listed: the stored
keys, and the variables and files that the manifests of the run name. What is in .git is
left out as well: --git takes it in, unless its configuration holds credentials.

Exit code 0: written. 2: it would hold a secret, or the run cannot be exported.`,
		Example: `  agentctl export @latest
  agentctl export run/fixer-01k failure.tar.gz --exclude node_modules --exclude '*.log'
  agentctl fork failure.tar.gz --at call_3_1 -f agents
  agentctl describe failure.tar.gz
  agentctl diff failure.tar.gz | git apply`,
		GroupID: groupRun,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("the run (run/ID or @latest) is missing")
			case len(args) > 2:
				return usagef("unexpected argument %q after the file", args[2])
			case len(args) == 2 && !export.Is(args[1]):
				return usagef("%q does not end in %s, by which an export is known", args[1], export.Suffix)
			}
			return nil
		},
		ValidArgsFunction: a.completeRunOrFile,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runExport(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.exclude, "exclude", nil, "leave out files that a `glob` matches; may be repeated")
	f.BoolVar(&o.git, "git", false, "take .git in")
	f.BoolVar(&o.withoutFiles, "without-files", false, "only what is in the journal: it cannot be forked")
	f.BoolVar(&o.force, "force", false, "replace the file if it is there")
	_ = cmd.RegisterFlagCompletionFunc("exclude", cobra.NoFileCompletions) // fails only for a flag that is not there
	output(cmd, &o.output, "format: a report, or one object")
	o.flags(cmd)
	return cmd
}

func (o *exportOptions) runExport(ctx context.Context, args []string) error {
	src, err := o.locateWord(ctx, args[0])
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("export")
	if err != nil {
		return err
	}
	file := id + export.Suffix
	if len(args) == 2 {
		file = args[1]
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	w, err := export.Write(ctx, export.Options{
		State: src.state, Ref: id, File: file, Replace: o.force, Exclude: o.exclude, Git: o.git, WithoutFiles: o.withoutFiles, Version: readVersion().Version,
	})
	if err != nil {
		return letGo(ctx, err)
	}
	out := display.Exported{
		Run: w.Run, Runs: w.Runs, File: w.File, Bytes: w.Bytes, SHA256: w.SHA256, Seq: w.Seq, Hash: w.Hash, HasFiles: w.HasFiles, Files: w.Files, Git: w.Git, Excluded: w.Excluded, Secrets: w.Secrets,
	}
	if o.output.value == display.FormatJSON {
		return out.WriteJSON(o.app.stdout())
	}
	return out.WriteText(o.app.stdout())
}
