package plan

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/policy/shell"
	"agentctl.dev/agentctl/runner/tool"
)

// RecordsPrograms reports whether calls that are not bound have to record what they execute:
// evidence says which commands have passed.
func (p *Plan) RecordsPrograms() bool { return len(p.Agent.Spec.Evidence) > 0 }

// Evidence is what the agent declares of its runs, and the variables that its expressions
// read. Tools are those of the plan, as their programs describe them. A run that carries out
// the plan of a skill, or calls of clients, has none: there is no answer that it belongs to.
func (p *Plan) Evidence(tools []tool.Definition) ([]v1alpha1.Evidence, *expect.Set) {
	if len(p.Agent.Spec.Evidence) == 0 || p.Served {
		return nil, nil
	}
	contract := expect.Contract{Shells: map[string]string{}, Evidence: true}
	known := true
	for i := range tools {
		d := &tools[i]
		known = known && d.Select == nil
		contract.Tools = append(contract.Tools, d.Name)
		if d.Shipped == shell.ToolBash || d.Shipped == shell.ToolArgv {
			contract.Shells[d.Name] = d.Shipped
		}
	}
	if !known {
		contract.Tools = nil // its functions are not known in a run that ended early
	}
	if in := p.Agent.Spec.Inputs; in != nil {
		contract.Inputs = in.Schema.Raw
	}
	if out := p.Agent.Spec.Output; out != nil {
		contract.Output = out.Schema.Raw
	}
	return p.Agent.Spec.Evidence, expect.NewSet(contract)
}
