package admission

import (
	"fmt"
	"reflect"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// unavailable ends the sentences about what stops a run.
const unavailable = "this version cannot run it: a run that uses it ends with exit code 8"

// notYet is a field that is part of the contract and does not work yet: it is
// admitted, and the author is told.
type notYet struct {
	kind, path string
	// values that do not work; none: any value but the one in except.
	values []string
	except any
	tell   string
}

// notYets is the one list of what is declared and does not work yet. A line
// leaves it together with the work that makes the field work.
var notYets = []notYet{
	{kind: v1alpha1.KindAgent, path: "spec.skills", tell: "skills are not loaded yet: the agent runs without them"},
	{kind: v1alpha1.KindAgent, path: "spec.subagents", tell: "subagents are not started yet: the agent runs without them"},
	{kind: v1alpha1.KindTool, path: "spec.flow", tell: "flow labels are not followed yet: rules cannot read them"},
	{kind: v1alpha1.KindTool, path: "spec.source.mcp", tell: unavailable},
	{kind: v1alpha1.KindTool, path: "spec.source.agent", tell: unavailable},
	{kind: v1alpha1.KindSkill, path: "spec.plan", tell: "plans are not carried out yet"},
	{kind: v1alpha1.KindWorkspace, path: "spec.strategy", values: []string{"Worktree"}, tell: unavailable},
	{kind: v1alpha1.KindWorkspace, path: "spec.source.git", tell: unavailable},
	{kind: v1alpha1.KindWorkspace, path: "spec.apply", values: []string{"Auto", "Never"}, tell: "not carried out yet: what a run changed waits for agentctl apply-changes"},
	{kind: v1alpha1.KindWorkspace, path: "spec.retain", values: []string{"Never"}, tell: "not carried out yet: copies are kept"},
	{kind: v1alpha1.KindRun, path: "spec.workspace.strategy", values: []string{"Worktree"}, tell: unavailable},
	{kind: v1alpha1.KindRun, path: "spec.workspace.source.git", tell: unavailable},
}

// pending warns about what does not work yet.
func (a *admitter) pending(d *manifest.Document) {
	for _, n := range notYets {
		if n.kind != d.Kind {
			continue
		}
		if v := lookup(d.Value, n.path); v != nil && n.concerns(v) {
			a.add(warnField(d, n.path, v, n.tell))
		}
	}
}

func (n notYet) concerns(v any) bool {
	if n.values != nil {
		for _, bad := range n.values {
			if v == bad {
				return true
			}
		}
		return false
	}
	if l, ok := v.([]any); ok {
		return len(l) > 0
	}
	return !reflect.DeepEqual(v, n.except)
}

// warnField stands at the field's name, with the value where it is one word.
func warnField(d *manifest.Document, path string, v any, tell string) manifest.Finding {
	if s, ok := v.(string); ok {
		tell = fmt.Sprintf("%s: %s", s, tell)
	}
	return d.Warnf(path, "%s", tell)
}

// lookup follows a path of plain names into a decoded object.
func lookup(obj map[string]any, path string) any {
	var v any = obj
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}
