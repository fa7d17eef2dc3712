package admission

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// coding checks what a Tool says about coding agents of others.
func (a *admitter) coding(d *manifest.Document, name string, s *v1alpha1.CodingSource) {
	const path = "spec.source.builtin.coding"
	if s == nil {
		return
	}
	if !builtin.Codes(name) {
		a.add(d.KeyErrorf(path, "the built-in tool %s runs no coding agents of others", name).With("remove it"))
		return
	}
	seen := map[v1alpha1.CodingAgent]bool{}
	for i, p := range s.Programs {
		at := manifest.Index(path+".programs", i)
		if seen[p.Agent] {
			a.add(d.Errorf(at+".agent", "%s is declared twice", p.Agent))
		}
		seen[p.Agent] = true
		if name == builtin.OpencodeRun && p.Agent != "opencode" {
			a.add(d.Errorf(at+".agent", "opencode_run runs opencode only, and this is %s", p.Agent).With("use the built-in tool coding_agent"))
		}
		a.command(d, at+".command", p.Command)
		a.program(d, at+".command", p.Command)
		if p.ModelRef == nil || !a.reference(d, at+".modelRef.name", v1alpha1.KindModel, p.ModelRef.Name, names(a.catalog.Models)) {
			continue
		}
		if m, ok := a.catalog.Models[p.ModelRef.Name]; ok {
			a.relayed(d, at, p.Agent, &m.Object.Spec)
		}
	}
}

// relayed refuses a Model whose API the program of a coding agent does not speak.
func (a *admitter) relayed(d *manifest.Document, at string, agent v1alpha1.CodingAgent, spec *v1alpha1.ModelSpec) {
	driver, ok := coder.DriverOf(string(agent))
	provider, known := a.opts.Models.Of(spec.Provider)
	if ok && known && !provider.Relay(string(driver.API)) {
		a.add(d.Errorf(at+".modelRef.name", "%s asks its model at %s, and provider %s has no such API", agent, driver.API, spec.Provider).
			With("name a Model of another provider"))
	}
}
