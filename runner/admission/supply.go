package admission

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool"
)

// supplies checks the variables that results of a tool may hold for later calls.
func (a *admitter) supplies(d *manifest.Document, t *v1alpha1.Tool, f *tool.Facts) {
	if len(t.Spec.Supplies) > 0 && !f.Supplies && f.Kind != "" {
		a.add(d.KeyErrorf("spec.supplies", "has no effect: only a program that speaks the tool protocol can supply variables, and source.%s is none", f.Kind).
			With("remove it, or make the tool a plugin (agentctl plugin init)"))
	}
	for i, name := range t.Spec.Supplies {
		at := manifest.Index("spec.supplies", i)
		if err := tool.Suppliable(name); err != nil && !d.Faulty(at) {
			a.add(d.Errorf(at, "%s", err).With("choose another name, such as API_TOKEN"))
		}
	}
}

// supplied checks a variable that a result of another tool supplies. That the other one is
// there is checked for each agent: both must be tools of it.
func (a *admitter) supplied(d *manifest.Document, path string, t *v1alpha1.Tool, e *v1alpha1.EnvVar, f *tool.Facts) {
	if err := tool.Suppliable(e.Name); err != nil && !d.Faulty(path+".name") {
		a.add(d.Errorf(path+".name", "%s", err).With("choose another name, such as API_TOKEN"))
	}
	switch {
	case f.Kind == "" || d.Faulty(path):
	case !f.Receives:
		a.add(d.Errorf(path+".suppliedBy", "has no effect: calls of this tool cannot be given variables of other calls").
			With("calls of source.exec, plugin and container can, and those of the built-in tool bash"))
	case e.SuppliedBy.Name == t.Name:
		a.add(d.Errorf(path+".suppliedBy.name", "a tool cannot wait for its own result"))
	}
}

// suppliers checks that an agent has the tools that supply its other tools with variables.
func (a *admitter) suppliers(d *manifest.Document, ag *v1alpha1.Agent) {
	for i, ref := range ag.Spec.Tools {
		t, ok := a.catalog.Tools[ref.Name]
		if !ok {
			continue
		}
		at := manifest.Index("spec.tools", i) + ".name"
		for _, e := range t.Object.Spec.Env {
			if e.SuppliedBy == nil || e.SuppliedBy.Name == t.Object.Name {
				continue
			}
			by := e.SuppliedBy.Name
			from, declared := a.catalog.Tools[by]
			switch {
			case !slices.ContainsFunc(ag.Spec.Tools, func(r v1alpha1.AgentTool) bool { return r.Name == by }):
				a.add(d.Errorf(at, "tool %q needs the variable %s, which tool %q supplies, and that is none of the agent's tools", ref.Name, e.Name, by).
					With(fmt.Sprintf("add {name: %s} to spec.tools", by)))
			case !declared || !slices.Contains(from.Object.Spec.Supplies, e.Name):
				a.add(d.Errorf(at, "tool %q needs the variable %s of tool %q, which does not supply it", ref.Name, e.Name, by).
					With(fmt.Sprintf("write supplies: [%s] in spec of the Tool %s", e.Name, by)))
			}
		}
	}
}
