package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace"
	"agentctl.dev/agentctl/runner/workspace/gitsource"
	"agentctl.dev/agentctl/runner/workspace/giturl"
)

// folder is the folder of a run.
type folder struct {
	id, dir string
	// existed means that it was there before this process.
	existed bool
	// created means that this process has created it, kept that a run has begun in it.
	created, kept bool
	// lent are the files of another run, which this one works on; nil: it has its own.
	lent *workspace.Spec
	// from is the folder of those files, if this one works on a copy of them; "": of none.
	from string
}

// name names the run and its folder.
func (f *folder) name(o *RunOptions, p *plan.Plan, newID func(string) string) {
	if f.id == "" {
		f.id = cmp.Or(o.ID, execution.RunID(p.Agent.Name, newID))
		f.dir = journal.Dir(o.State, f.id)
		_, err := os.Lstat(f.dir)
		f.existed = err == nil
	}
}

// create names the run and creates its folders. It returns where its files are.
func (f *folder) create(o *RunOptions, p *plan.Plan, newID func(string) string) (workspace.Spec, error) {
	f.name(o, p, newID)
	if f.lent != nil {
		return *f.lent, nil
	}
	files := p.Workspace
	files.Dir, files.From = environment.FilesDir(f.dir, f.id, files.Source, files.Cloned), f.from
	err := workspace.MakeDir(files)
	f.created = f.created || err == nil && !f.existed
	return files, err
}

// remove removes the folder of a run that did not begin.
func (f *folder) remove() error {
	if !f.created || f.kept {
		return nil
	}
	return fstree.Remove(f.dir)
}

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
	var resolved *event.SecretResolved
	if git.Auth != nil {
		var err error
		if password, err = host.Secret(ctx, "workspace: source.git.auth.password", git.Auth.Password.ValueFrom); err != nil {
			return nil, err
		}
		e := environment.Resolved(git.Auth.Password.ValueFrom, event.SecretResolved{Field: "source.git.auth.password"})
		resolved = &e
	}
	dir := environment.CopyDir(f.dir, f.id, giturl.Name(git.URL))
	f.created = !f.existed
	c, err := gitsource.New(ctx, gitsource.Options{
		Source: git, Password: password, Dir: dir, Skip: p.Workspace.Skip, SizeLimit: p.Workspace.SizeLimit, Progress: o.Cloning,
	})
	if err != nil {
		return nil, err
	}
	return &plan.Repository{Dir: dir, Clone: event.GitClone{URL: git.URL, Ref: git.Ref, Commit: c.Commit}, Notes: c.Notes, Secret: password, Resolved: resolved}, nil
}

// discardClone removes what a process has left that was killed while it cloned. A run that
// has begun keeps its files, and is not begun again.
func (f *folder) discardClone(ctx context.Context) error {
	if report, err := journal.Verify(ctx, f.dir); err != nil || report.Events > 0 {
		return errors.Join(fmt.Errorf("begin the run: a journal exists already in %s", f.dir), err)
	}
	if err := fstree.Remove(filepath.Join(f.dir, "workspace")); err != nil {
		return fmt.Errorf("begin the run: %w", err)
	}
	return nil
}
