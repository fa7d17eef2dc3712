package policy

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// A command of git such as show or log -p prints the content of files without naming them.
// The files are taken from git's index, the list of what it tracks now, not from its
// history. A name that was once seen in the index is kept for the run, so that removing a
// file from the index hides nothing.
//
// A repository can hold more files than the decision on one call has time for. So each
// rule is evaluated for many names at once, and only once for a name as long as it reads
// nothing but the name.

// tracked are the names that git tracks, by index.
type tracked struct {
	mu       sync.Mutex
	listings map[string]*listing
}

// listing grows during a run.
type listing struct {
	stamp os.FileInfo
	known map[string]bool
	paths []Path
	// asked holds for how many of the paths a rule was evaluated, and for which of them it
	// applies.
	asked map[any]*asked
}

type asked struct {
	upTo int
	hits []int
}

// Limits of one call.
const (
	// together is what the types of rules allow for.
	together = factItems
	// singlesLimit bounds how often rules are asked about single names.
	singlesLimit = 100_000
)

// listingOf reads the names of a repository, unless they are those of before.
func (t *tracked) listingOf(w Workspace, repo repository) (*listing, error) {
	l := t.listings[repo.index]
	if l == nil {
		l = &listing{known: map[string]bool{}, asked: map[any]*asked{}}
		t.listings[repo.index] = l
	}
	info, err := os.Stat(repo.index)
	if err != nil {
		return nil, fmt.Errorf("read what git tracks: %w", err)
	}
	if l.stamp != nil && os.SameFile(l.stamp, info) && l.stamp.Size() == info.Size() && l.stamp.ModTime().Equal(info.ModTime()) {
		return l, nil
	}
	names, err := readIndex(repo.index)
	if err != nil {
		return nil, fmt.Errorf("read what git tracks: %w", err)
	}
	if len(l.paths)+len(names) > 2*namesLimit {
		return nil, errIndex
	}
	l.stamp = info
	root, realRoot := filepath.Clean(w.Root), realPath(filepath.Clean(w.Root))
	for _, name := range names {
		if !l.known[name] {
			l.known[name] = true
			l.paths = append(l.paths, trackedPath(repo.tree+"/"+name, root, realRoot))
		}
	}
	return l, nil
}

// trackedPath is a name in git: no link leads anywhere from it.
func trackedPath(name, root, realRoot string) Path {
	p := Path{Raw: name, Clean: name, Real: name, Op: opRead, Secret: IsSecret(name)}
	if rel, ok := strings.CutPrefix(name, realRoot+"/"); ok {
		p.Raw, p.Clean, p.InWorkspace = rel, root+"/"+rel, true
	}
	return p
}

// shown are the files that a script's commands of git could print, one for each rule that
// applies to such a file. All is false when that is not known.
func (e *Engine) shown(ctx context.Context, j *judged, in *input, r *reading) (paths []Path, all bool) {
	all = true
	singles := singlesLimit
	for _, at := range in.facts.script.Repositories {
		repo, ok := e.context.Workspace.repository(in.facts, at)
		if !ok {
			continue
		}
		e.tracked.mu.Lock()
		l, err := e.tracked.listingOf(e.context.Workspace, repo)
		if err == nil && at.Content {
			limits := limitedTo(repo, at, e.context.Workspace, in.facts)
			for _, g := range []struct {
				of *judged
				in *input
			}{{e.reader, r.in}, {j, in}} {
				if g.in.unknown != nil {
					continue // what is unknown is asked about already
				}
				p, whole := l.ask(ctx, g.of, g.in, limits, &singles)
				paths, all = append(paths, p...), all && whole
			}
		}
		e.tracked.mu.Unlock()
		all = all && (err == nil || !at.Content)
	}
	return paths, all
}

// repository finds the one that a command works on.
func (w Workspace) repository(f *facts, at shell.Repository) (repository, bool) {
	p := w.resolve(at.Dir, opRead)
	if p.Real == shell.Unknown {
		return repository{}, false // the script is dynamic
	}
	dir := p.Real
	if dots := f.script.Joined(at.Dir); dots != at.Dir {
		dir = w.resolve(dots, opRead).Real
	}
	return findRepository(dir, at.Named)
}

// limitedTo returns the absolute paths to which a command is limited, nil for all.
func limitedTo(repo repository, at shell.Repository, w Workspace, f *facts) []string {
	var limits []string
	for _, name := range at.Paths {
		p := path.Join(w.resolve(f.script.Joined(at.Dir), opRead).Real, name)
		if filepath.IsAbs(name) {
			p = w.resolve(name, opRead).Real
		}
		if !inside(p, repo.tree) || p == repo.tree {
			return nil
		}
		limits = append(limits, p)
	}
	return limits
}

// ask returns the first file of each rule, and of each list, that the rule could
// make a difference to.
func (l *listing) ask(ctx context.Context, j *judged, in *input, limits []string, singles *int) (paths []Path, all bool) {
	all = true
	take := func(hits []int, action v1alpha1.Action) {
		for _, i := range hits {
			p := l.paths[i]
			// Files above the workspace are in the same repository: for them a deny
			// counts, an ask does not.
			if !p.InWorkspace && action != v1alpha1.ActionDeny {
				continue
			}
			if limits == nil || slices.ContainsFunc(limits, func(to string) bool { return inside(p.Real, to) }) {
				paths = append(paths, p)
				return
			}
		}
	}
	for _, r := range j.enforced.onPaths() {
		hits, ok := l.askRule(ctx, r, in, singles)
		all = all && ok
		take(hits, r.action())
	}
	for _, c := range j.enforced.lists {
		take(l.askList(c, in.facts.root, v1alpha1.ActionDeny), v1alpha1.ActionDeny)
		take(l.askList(c, in.facts.root, v1alpha1.ActionAsk), v1alpha1.ActionAsk)
	}
	return paths, all
}

// onPaths are the rules for which it matters which file a call touches.
func (g *group) onPaths() []*rule {
	var rules []*rule
	for _, action := range []v1alpha1.Action{v1alpha1.ActionDeny, v1alpha1.ActionAsk, v1alpha1.ActionAllow} {
		for _, r := range g.calls[action] {
			if r.when != nil && (r.when.Reads("paths") || r.when.Reads("call", "args", "path") || r.when.Reads("variables")) {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// action is the strictest effect of a rule that applies: an allow that no longer applies
// leaves the call to the others, which may deny it.
func (r *rule) action() v1alpha1.Action {
	if r.broken || r.spec.Action == v1alpha1.ActionAllow {
		return v1alpha1.ActionDeny
	}
	return r.spec.Action
}

// askRule returns the files that a rule applies to.
func (l *listing) askRule(ctx context.Context, r *rule, in *input, singles *int) (hits []int, all bool) {
	seen := l.asked[r]
	if seen == nil || !r.steady() {
		seen = &asked{}
		l.asked[r] = seen
	}
	many := 1
	if r.spec.Action != v1alpha1.ActionAllow && !r.negated && r.when.Spreads("paths") && !r.when.Reads("call", "args", "path") && !r.when.Reads("variables") {
		many = together
	}
	for ; seen.upTo < len(l.paths); seen.upTo += many {
		if many == 1 {
			if *singles--; *singles < 0 {
				return seen.hits, false
			}
		}
		l.narrow(ctx, r, in, seen, seen.upTo, min(seen.upTo+many, len(l.paths)))
	}
	seen.upTo = len(l.paths)
	return seen.hits, true
}

// narrow finds the files of a part that a rule applies to.
func (l *listing) narrow(ctx context.Context, r *rule, in *input, seen *asked, from, to int) {
	t, err := r.truth(ctx, in.on(l.paths[from:to]...))
	silent := expr.False
	if r.spec.Action == v1alpha1.ActionAllow {
		silent = expr.True
	}
	switch {
	case err == nil && t == silent:
	case to-from == 1:
		seen.hits = append(seen.hits, from)
	default:
		middle := (from + to) / 2
		l.narrow(ctx, r, in, seen, from, middle)
		l.narrow(ctx, r, in, seen, middle, to)
	}
}

// steady reports whether a rule reads nothing that changes from call to call but paths.
func (r *rule) steady() bool {
	return !r.when.Reads("run", "step") &&
		!slices.ContainsFunc([]string{"call", "cmd", "net", "session", "budget", "now", "variables"}, func(v string) bool { return r.when.Reads(v) })
}

// askList returns the files that a list does not let anybody read.
func (l *listing) askList(c *Compiled, root string, action v1alpha1.Action) []int {
	type key struct {
		list   *Compiled
		action v1alpha1.Action
	}
	seen := l.asked[key{c, action}]
	if seen == nil {
		seen = &asked{}
		l.asked[key{c, action}] = seen
	}
	for ; seen.upTo < len(l.paths); seen.upTo++ {
		if c.onPath([]string{builtinRead}, &l.paths[seen.upTo], root) == action {
			seen.hits = append(seen.hits, seen.upTo)
		}
	}
	return seen.hits
}
