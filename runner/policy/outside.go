package policy

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// outsideLimit bounds the paths outside the workspace that one call gets.
const outsideLimit = 32

// outside returns the paths outside the workspace that a call may use when it runs after
// this decision:
//
//	decision        paths
//	deny            none
//	ask             all that the call names: a person who approves it has seen them
//	allow, redact   those that a policy names as allowed, see opens
//
// A default is not enough. byRisk allows many calls because nothing outside the workspace
// is within their reach; such a decision must not change that.
func (e *Engine) outside(ctx context.Context, j *judged, in *input, action message.Action) []message.OutsidePath {
	if action != message.Allow && action != message.Ask && action != message.Redact {
		return nil
	}
	var paths []message.OutsidePath
	for _, p := range in.facts.paths {
		if p.InWorkspace || p.Real == shell.Unknown || len(p.Real) < 2 || p.Real[0] != '/' {
			continue
		}
		if action != message.Ask && !j.opens(ctx, in, p) {
			continue
		}
		add := message.OutsidePath{Name: p.Clean, Real: p.Real, Writable: p.Op == opWrite || p.Op == opDelete}
		at := slices.IndexFunc(paths, func(o message.OutsidePath) bool { return o.Name == add.Name && o.Real == add.Real })
		switch {
		case at >= 0:
			paths[at].Writable = paths[at].Writable || add.Writable
		case len(paths) < outsideLimit:
			paths = append(paths, add)
		}
	}
	return paths
}

// opens reports whether a policy allows this path outside the workspace by name.
// An allow rule does when its condition reads the path and holds for this path
// alone. A permission list does with an entry for external_directory, and, to
// change the path, with one for edit as well. A rule or list that allows a tool
// whatever its path is was written for the files of the workspace.
func (j *judged) opens(ctx context.Context, in *input, p Path) bool {
	on := in.on(p)
	for _, r := range j.enforced.calls[v1alpha1.ActionAllow] {
		if !r.readsPath() || !lifts(r, j.tool) || r.blind(in.facts) {
			continue
		}
		if t, err := r.truth(ctx, on); err == nil && t == expr.True {
			return true
		}
	}
	needs := [][]string{{externalDirectory}}
	if p.Op == opWrite || p.Op == opDelete {
		needs = append(needs, append([]string{"edit"}, j.tool.names()...))
	}
	return slices.ContainsFunc(j.enforced.lists, func(c *Compiled) bool {
		return !slices.ContainsFunc(needs, func(names []string) bool { return c.onPath(names, &p, in.facts.root) != v1alpha1.ActionAllow })
	})
}

// readsPath reports whether the condition of the rule reads a path of the call.
func (r *rule) readsPath() bool {
	if r.when == nil || r.broken {
		return false
	}
	return r.when.Reads("paths") || r.when.Reads("call", "args", "path") || r.when.Reads("call", "args", "workdir") || r.when.Reads("call", "args", "cwd")
}
