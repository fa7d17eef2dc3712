package admission

import (
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/diagnose"
)

// diagnostics checks what an agent checks its files with.
func (a *admitter) diagnostics(d *manifest.Document, ag *v1alpha1.Agent) {
	for i := range ag.Spec.Diagnostics {
		at, c := manifest.Index("spec.diagnostics", i), &ag.Spec.Diagnostics[i]
		for j, glob := range c.Files {
			if !doublestar.ValidatePattern(glob) {
				a.add(d.Errorf(manifest.Index(at+".files", j), "%q is not a glob", clip(glob)))
			}
		}
		field, command := at+".command", c.Command
		if len(c.Server) > 0 {
			field, command = at+".server", c.Server
		}
		a.command(d, field, command)
		a.program(d, field, command)
		a.positive(d, at+".timeout", c.Timeout.Duration)
		if c.Timeout.Duration > diagnose.MaxTimeout && !d.Faulty(at+".timeout") {
			a.add(d.Errorf(at+".timeout", "%s is more than %s: every change waits for it", c.Timeout.Duration, diagnose.MaxTimeout).
				With("run what takes longer as a command of bash"))
		}
	}
	if len(ag.Spec.Diagnostics) == 0 || slices.ContainsFunc(ag.Spec.Tools, a.writes) || slices.ContainsFunc(ag.Spec.Subagents, copied) {
		return
	}
	a.add(d.Warnf("spec.diagnostics", "the agent has none of edit, write, patch and workspace_fs, so no call starts them"))
}

// writes reports whether the result of a tool says which files it has changed.
func (a *admitter) writes(t v1alpha1.AgentTool) bool {
	name := t.Name
	if e, ok := a.catalog.Tools[t.Name]; ok {
		name = builtin.Named(&e.Object.Spec.Source)
	}
	return slices.Contains([]string{"edit", "write", "patch", "workspace_fs"}, name)
}
