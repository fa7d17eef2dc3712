package environment

import (
	"path/filepath"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// gitFile is the file in the run's folder that holds the guard, for a run that is
// resumed after a crash.
func (e *Environment) gitFile() string { return filepath.Join(e.Dir, "git.json") }

// takeGit records what git would run of files worked on in place, before the first
// program runs. A resumed run has recorded it already: what the programs of the
// interrupted run have changed is undone before another program runs.
func (e *Environment) takeGit() error {
	failed := func(err error) error {
		return reason.New(reason.WorkspaceUnavailable, "note what git would run of %s: %w", e.Root(), err)
	}
	g, err := gitguard.Load(e.gitFile())
	if err != nil {
		return failed(err)
	}
	if g != nil {
		e.guarded = g
		e.RestoreGit(false)
		return nil
	}
	if g, err = gitguard.Take(e.Root()); err != nil {
		return failed(err)
	}
	if err := g.Save(e.gitFile()); err != nil {
		return failed(err)
	}
	e.guarded = g
	return nil
}

// RestoreGit undoes what programs have done to what git runs, and reports it: each
// finding is a warning of the run and of its result.
func (e *Environment) RestoreGit(done bool) {
	if e.Workspace.Strategy != v1alpha1.StrategyInPlace {
		return
	}
	if e.guarded == nil { // a resumed run that ends before it has its files
		g, err := gitguard.Load(e.gitFile())
		if err != nil || g == nil {
			return
		}
		e.guarded = g
	}
	found, err := e.guarded.Restore(e.Root(), done)
	for _, text := range found {
		warn(e.Journal, text)
	}
	if err != nil {
		warn(e.Journal, "what programs changed of the files that git runs could not be undone: "+err.Error())
	}
}
