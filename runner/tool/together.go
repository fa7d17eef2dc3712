package tool

import (
	"cmp"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// together are the profiles of tools that share a process, by what the process may do
// with the run's files. A tool whose programs could do more than it declares, would the
// mount let them, shares only with tools of the same access; one that by itself only
// reads is in the process of the widest access, so that the tools as they are shipped are
// one process.
type together struct {
	widest   spec.Access
	profiles map[spec.Access]*spec.Profile
}

func newTogether(tools []Definition) *together {
	t := &together{widest: spec.AccessNone, profiles: map[spec.Access]*spec.Profile{}}
	for i := range tools {
		d := &tools[i]
		if a := spec.Access(d.Spec.WorkspaceAccess); d.sandboxed() && d.shares() && rank(a) > rank(t.widest) {
			t.widest = a
		}
	}
	return t
}

// add returns the profile that the tool shares, which allows what p does.
func (t *together) add(d *Definition, p *spec.Profile) *spec.Profile {
	p.Access = cmp.Or(p.Access, spec.AccessNone)
	if d.harmless() {
		p.Access = t.widest
	}
	shared := t.profiles[p.Access]
	if shared == nil {
		t.profiles[p.Access] = p
		return p
	}
	loosen(shared, p)
	return shared
}

// shares reports whether a tool runs with others: it asks for nothing but access to the
// run's files.
func (d *Definition) shares() bool {
	return d.Together && len(d.Spec.Env) == 0 &&
		len(d.Spec.Isolation.Mounts) == 0 && d.Spec.Network.Mode == v1alpha1.NetworkNone && !d.Spec.Isolation.Fresh
}

// harmless reports whether a tool does no more than it declares in a process that may do
// more: it is shipped, has the access that it is shipped with, and starts no programs.
func (d *Definition) harmless() bool {
	shipped, ok := builtin.Lookup(d.Shipped)
	return ok && d.Spec.WorkspaceAccess == shipped.Access && !slices.Contains(shipped.Effects, v1alpha1.EffectExecute)
}

// rank orders what a process may do with the run's files.
func rank(a spec.Access) int {
	return slices.Index([]spec.Access{spec.AccessNone, spec.AccessReadOnly, spec.AccessReadWrite}, a)
}

// loosen adds to the limits of a profile what those of another allow.
func loosen(p, other *spec.Profile) {
	more := func(a, b int64) int64 { // 0: there is no limit
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	l, o := &p.Limits, other.Limits
	l.Memory, l.CPU, l.Pids = more(l.Memory, o.Memory), more(l.CPU, o.CPU), more(l.Pids, o.Pids)
	l.Scratch = max(cmp.Or(l.Scratch, spec.DefaultScratch), cmp.Or(o.Scratch, spec.DefaultScratch))
}
