package environment

import (
	"path/filepath"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// git guards what git would run of files that are worked on in place.
type git struct {
	inPlace bool
	root    string
	// skip are folders that no program sees.
	skip []string
	// file holds the guard, for a run that is resumed after a crash.
	file    string
	journal Journal

	// guard records what git would run, once, before the first program runs.
	guard func() error
	// guarded is what was recorded; nil before.
	guarded *gitguard.Guard
}

func newGit(o *Options) *git {
	g := &git{
		inPlace: o.Workspace.Strategy == v1alpha1.StrategyInPlace, root: Root(o.Workspace), skip: o.Workspace.Skip, file: filepath.Join(o.Dir, "git.json"), journal: o.Journal,
	}
	g.guard = sync.OnceValue(g.take)
	return g
}

// take records what git would run. A resumed run has recorded it already: what the
// programs of the interrupted run have changed is undone before another program runs.
func (g *git) take() error {
	failed := func(err error) error {
		return reason.New(reason.WorkspaceUnavailable, "note what git would run of %s: %w", g.root, err)
	}
	guarded, err := gitguard.Load(g.file)
	if err != nil {
		return failed(err)
	}
	if guarded != nil {
		g.guarded = guarded
		g.restore(false)
		return nil
	}
	if guarded, err = gitguard.Take(g.root, g.skip...); err != nil {
		return failed(err)
	}
	if err := guarded.Save(g.file); err != nil {
		return failed(err)
	}
	g.guarded = guarded
	return nil
}

// restore undoes what programs have done to what git runs, and reports it: each
// finding is a warning of the run and of its result.
func (g *git) restore(done bool) {
	if !g.inPlace {
		return
	}
	if g.guarded == nil { // a resumed run that ends before it has its files
		guarded, err := gitguard.Load(g.file)
		if err != nil || guarded == nil {
			return
		}
		g.guarded = guarded
	}
	found, err := g.guarded.Restore(g.root, done, g.skip...)
	for _, text := range found {
		warn(g.journal, text)
	}
	if err != nil {
		warn(g.journal, "what programs changed of the files that git runs could not be undone: "+err.Error())
	}
}
