package plan

import (
	"fmt"

	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/publish/item"
)

// Targets are where the items of spec.publish go, in its order.
func (p *Plan) Targets() ([]item.Target, error) {
	all := make([]item.Target, len(p.Agent.Spec.Publish))
	for i := range p.Agent.Spec.Publish {
		declared := &p.Agent.Spec.Publish[i]
		var err error
		if all[i], err = item.Resolve(declared, func(text string) (string, error) { return prompt.Fill(text, p.Inputs) }); err != nil {
			return nil, fmt.Errorf("agent %q: spec.publish %s: %w", p.Agent.Name, declared.Name, err)
		}
	}
	return all, nil
}
