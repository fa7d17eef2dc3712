package runner

import (
	"context"
	"fmt"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace/gitsource"
)

// clone clones the repository of a workspace into the folder of the run, within the time
// that the run may take.
func (f *folder) clone(ctx context.Context, o *RunOptions, p *plan.Plan, git *v1alpha1.GitSource, newID func(string) string, host *environment.Host) (*plan.Repository, error) {
	f.name(o, p, newID)
	if f.existed {
		if err := f.discardClone(ctx); err != nil {
			return nil, err
		}
	}
	limit := p.Limits.Timeout.Duration
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, reason.New(reason.DeadlineExceeded, "limits.timeout of %s passed", limit).
			WithHint("raise spec.limits.timeout of the agent, or --timeout"))
		defer cancel()
	}
	var password secret.Value
	if git.Auth != nil {
		var err error
		if password, err = host.Secret(ctx, "workspace: source.git.auth.password", git.Auth.Password.ValueFrom); err != nil {
			return nil, err
		}
	}
	dir := environment.CopyDir(f.dir, f.id, gitsource.Name(git.URL))
	f.created = !f.existed
	c, err := gitsource.New(ctx, gitsource.Options{
		Source: git, Password: password, Dir: dir, Skip: p.Workspace.Skip, SizeLimit: p.Workspace.SizeLimit, Progress: o.Cloning,
	})
	if err != nil {
		return nil, err
	}
	return &plan.Repository{Dir: dir, Clone: event.GitClone{URL: git.URL, Ref: git.Ref, Commit: c.Commit}, Notes: c.Notes, Secret: password}, nil
}

// discardClone removes what a process has left that was killed while it cloned. A run that
// has begun keeps its files.
func (f *folder) discardClone(ctx context.Context) error {
	if report, err := journal.Verify(ctx, f.dir); err != nil || report.Events > 0 {
		return nil //nolint:nilerr // journal.Create reports what is there
	}
	if err := fstree.Remove(filepath.Join(f.dir, "workspace")); err != nil {
		return fmt.Errorf("begin the run: %w", err)
	}
	return nil
}
