package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/audit"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

func (a *app) auditCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify and export what runs have recorded, and sign receipts of them",
		Long: `Verify what runs have recorded, export their audit records, and sign receipts.

A run keeps a journal (events-DAY.jsonl), blobs, and an audit log (audit.log.jsonl),
which is a projection of the journal: one record for each call, approval, connection
and secret reference.`,
		GroupID: groupRun,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditVerifyCmd(), a.auditExportCmd(), a.auditReceiptCmd())
	return cmd
}

// namesRun reports whether a word is that of a run and not of a path: where both fit, it is
// the path.
func namesRun(word string) bool {
	kind, _, slash := strings.Cut(word, "/")
	if slash {
		if k, err := parseKind(kind); err == nil && (k == v1alpha1.KindRun || k == v1alpha1.KindApproval) {
			return true
		}
	}
	_, err := os.Lstat(word)
	return word == runs.Latest || export.Is(word) || err != nil && !slash
}

// audited are the folders of the runs that a word names: of a run, or of a path. The source is
// set for a run, and must be closed.
func (t *target) audited(ctx context.Context, word, verb string) ([]string, *source, error) {
	if !namesRun(word) {
		found, err := audit.Look(word)
		if err != nil {
			return nil, nil, err
		}
		if found.Kind != audit.KindJournal {
			return nil, nil, usagef("%s is not the folder of a run", word)
		}
		return found.Dirs, nil, nil
	}
	src, err := t.openWord(ctx, word)
	if err != nil {
		if state, other := statedir.Find(t.app.state); other == nil {
			if dir, other := audit.FindRun(state, word); other == nil { // one whose events are gone
				return []string{dir}, nil, nil
			}
		}
		return nil, nil, err
	}
	id, err := src.local(verb)
	if err == nil {
		var dir string
		if dir, err = audit.FindRun(src.state, id); err == nil {
			return []string{dir}, src, nil
		}
	}
	src.close()
	return nil, nil, err
}

// unverified is the error of what could not be read: exit code 2, because 1 means that
// something was changed.
func unverified(err error) error {
	if _, ok := errors.AsType[*reason.UsageError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return err
	}
	return &codeError{err, reason.ExitUsage}
}
