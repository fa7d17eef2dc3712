package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/audit"
)

type auditExportOptions struct {
	target
	output choice
}

func (a *app) auditExportCmd() *cobra.Command {
	o := &auditExportOptions{target: target{app: a}, output: newChoice(display.FormatJSONL, display.FormatCSV)}
	cmd := &cobra.Command{
		Use:   "export RUN|FOLDER",
		Short: "Print the audit records of a run",
		Long: `Print the audit records of a run, one a line: each call as tool.<name>, each
approval, connection and secret reference, the begin and the end of the run.

They are made from the journal, whose chain is checked on the way: where it was
changed, the records before that place are printed, and the exit code is 1. Behind the
records of a run that goes on, or was interrupted, are the calls that have no result
yet. "agentctl schema audit" describes the records. With -o csv each field is a column;
a text that a spreadsheet would take for a formula begins with an apostrophe.

Exit codes: 0, the records are complete; 1, the journal was changed; 2, it could not be
read.`,
		Example: `  agentctl audit export @latest
  agentctl audit export run/hello -o csv > hello.csv
  agentctl audit export @latest | jq 'select(.details.decision == "deny")'`,
		Args:              oneArg("the run"),
		ValidArgsFunction: a.completeRunOrFile,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runExport(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "format: a JSON object a line, or a table with commas")
	o.flags(cmd)
	return cmd
}

func (o *auditExportOptions) runExport(ctx context.Context, word string) error {
	dirs, src, err := o.audited(ctx, word, "audit export")
	if err != nil {
		return unverified(err)
	}
	if src != nil {
		defer src.close()
	}
	if len(dirs) > 1 {
		return usagef("%d runs are in %s: name the folder of one", len(dirs), word)
	}
	out := display.NewAuditRecords(o.app.stdout(), o.output.value)
	err = audit.Export(ctx, dirs[0], out.Write)
	if ended := out.End(); err == nil || display.BrokenPipe(ended) {
		err = ended
	}
	if audit.Changed(err) || display.BrokenPipe(err) || err == nil {
		return err
	}
	return unverified(err)
}
