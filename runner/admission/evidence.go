package admission

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// evidence compiles what agents declare of their runs.
func (a *admitter) evidence() {
	for _, name := range names(a.catalog.Agents) {
		e := a.catalog.Agents[name]
		declared := e.Object.Spec.Evidence
		if len(declared) == 0 {
			continue
		}
		set := a.catalog.evidenceOf(e.Object)
		for i := range declared {
			field := manifest.Index("spec.evidence", i) + ".expression"
			if e.Doc.Faulty(field) || declared[i].Expression == "" {
				continue
			}
			c, err := set.Compile(declared[i].Expression)
			if err != nil {
				a.add(inside(e.Doc, field, err))
				continue
			}
			if value, constant := c.Constant(); constant {
				what := map[bool]string{true: "true whatever the run does: it proves nothing", false: "false whatever the run does: no run can succeed"}[value]
				a.add(e.Doc.Warnf(field, "the evidence is %s", what).With("read calls, decisions, result or files, as in calls.passed('go', 'test')"))
			}
		}
	}
}

// evidenceOf compiles the evidence of an agent.
func (c *Catalog) evidenceOf(a *v1alpha1.Agent) *expect.Set {
	contract := c.contract(a)
	contract.Evidence = true
	return expect.NewSet(contract)
}

// contract is what is known of an agent whose runs are looked at.
func (c *Catalog) contract(a *v1alpha1.Agent) expect.Contract {
	contract := expect.Contract{Shells: c.shells(a)}
	if k := c.callable(a); !k.open && len(k.several) == 0 {
		contract.Tools = names(k.names)
	}
	if in := a.Spec.Inputs; in != nil {
		contract.Inputs = in.Schema.Raw
	}
	if out := a.Spec.Output; out != nil {
		contract.Output = out.Schema.Raw
	}
	return contract
}

// shells are the shipped tools of an agent that run commands, by what it calls them.
func (c *Catalog) shells(a *v1alpha1.Agent) map[string]string {
	all := map[string]string{}
	for _, t := range a.Spec.Tools {
		name, shipped := t.Name, t.Name
		if e, declared := c.Tools[t.Name]; declared {
			facts, _ := c.kinds.Facts(&e.Object.Spec) // what is wrong is found with the Tool
			name, shipped = CallName(e.Object), facts.Shipped
		}
		if shipped == shell.ToolBash || shipped == shell.ToolArgv {
			all[name] = shipped
		}
	}
	return all
}
