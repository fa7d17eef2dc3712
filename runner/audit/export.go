package audit

import (
	"context"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
)

// Export passes the audit records of the run in dir to see, as its journal has them; behind
// them the calls that have no result yet, with the state running or pending. The chain is
// checked on the way: a journal that was changed is an error, behind the records before it.
// A log that a crash has left incomplete is completed, where it can be written.
func Export(ctx context.Context, dir string, see func(audit.Record) error) error {
	p := trail.NewProjection(see)
	report, err := journal.Check(ctx, dir, func(l journal.Line) error { return p.Line(l.Text) })
	if err != nil {
		return err
	}
	for _, r := range p.Open() {
		if err := see(r); err != nil {
			return err
		}
	}
	if p.Kept() && !report.Anchored {
		// A process that writes the journal holds the lock, and completes the log itself.
		_ = journal.Locked(ctx, dir, report.Run, func() error {
			_, err := trail.Complete(ctx, dir)
			return err
		})
	}
	return nil
}
