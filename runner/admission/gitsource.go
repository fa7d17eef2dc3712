package admission

import (
	"errors"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/workspace/giturl"
)

// gitSource checks the repository of a workspace. at is the path of the workspace.
func (a *admitter) gitSource(d *manifest.Document, at string, w *v1alpha1.WorkspaceSpec) {
	git, at2 := w.Source.Git, at+".source.git"
	if err := giturl.Check(git.URL, ""); err != nil && git.URL != "" {
		f := d.Errorf(at2+".url", "%v", err)
		if errors.Is(err, giturl.ErrCredentials) {
			d.Hide(git.URL)
			f = d.Errorf(at2+".url", "%v", err).With("remove them, and write auth: {password: {valueFrom: {env: NAME}}} beside the url")
		}
		a.add(f)
	}
	if err := giturl.CheckRef(git.Ref); err != nil {
		a.add(d.Errorf(at2+".ref", "%v", err))
	}
	if git.Auth != nil && !strings.HasPrefix(git.URL, "https://") && !strings.HasPrefix(git.URL, "http://") {
		a.add(d.Errorf(at2+".auth", "has no effect: only a server that is reached by https takes a password").With("remove it; ssh uses the keys of the user"))
	}
	if w.Strategy == v1alpha1.StrategyInPlace {
		a.add(d.Errorf(at+".strategy", "InPlace has no folder to work on: a git source is cloned for each run").With("write strategy: Copy"))
	}
	if len(w.Exclude) > 0 {
		a.add(d.Errorf(at+".exclude", "has no effect: a git source is cloned as a whole").With("remove it"))
	}
}
