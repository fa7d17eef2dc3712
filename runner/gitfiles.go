package runner

import (
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace/gitguard"
)

// gitFile is the file in the run's folder that holds the guard, for a run that is
// resumed after a crash.
func (s *session) gitFile() string { return filepath.Join(s.dir, "git.json") }

// takeGit notes what git would run of files worked on in place, before the first
// program runs. A resumed run has noted it already: what the programs of the
// interrupted run have changed is undone before any other runs.
func (s *session) takeGit() error {
	failed := func(err error) error {
		return reason.New(reason.WorkspaceUnavailable, "note what git would run of %s: %w", s.root(), err)
	}
	g, err := gitguard.Load(s.gitFile())
	if err != nil {
		return failed(err)
	}
	if g != nil {
		s.guarding = g
		s.restoreGit(false)
		return nil
	}
	if g, err = gitguard.Take(s.root()); err != nil {
		return failed(err)
	}
	if err := g.Save(s.gitFile()); err != nil {
		return failed(err)
	}
	s.guarding = g
	return nil
}

// restoreGit undoes what programs have done to what git runs, and reports it: each
// finding is a warning of the run, and so stands in its result.
func (s *session) restoreGit(done bool) {
	if s.plan.files.Strategy != v1alpha1.StrategyInPlace {
		return
	}
	if s.guarding == nil { // a resumed run that ends before it has its files
		g, err := gitguard.Load(s.gitFile())
		if err != nil || g == nil {
			return
		}
		s.guarding = g
	}
	found, err := s.guarding.Restore(s.root(), done)
	for _, text := range found {
		_ = s.recorder.tell(event.Warning{Message: text}) // a journal that fails ends the run for the same reason
	}
	if err != nil {
		_ = s.recorder.tell(event.Warning{Message: "what programs changed of the files that git runs could not be undone: " + err.Error()})
	}
}
