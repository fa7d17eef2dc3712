package admission

import (
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// planCoders adds the models that the Tools for coding agents of others name, and the tool
// that takes over what such an agent has changed.
func (c *Catalog) planCoders(p *Plan) error {
	known := map[string]bool{}
	for _, m := range append([]*v1alpha1.Model{p.Model, p.Summarizer}, p.Fallbacks...) {
		if m != nil {
			known[m.Name] = true
		}
	}
	codes := false
	for i := range p.Tools {
		s := &p.Tools[i].Tool.Spec.Source
		codes = codes || builtin.Codes(builtin.Named(s))
		for _, ref := range builtin.CodingModels(s) {
			if known[ref] {
				continue
			}
			known[ref] = true
			model, err := c.chooseModel(ref, p.Agent)
			if err != nil {
				return fmt.Errorf("tool %q: spec.source.builtin.coding: %w", p.Tools[i].Tool.Name, err)
			}
			p.Coders = append(p.Coders, model.Object.DeepCopy())
			absoluteModel(p.Coders[len(p.Coders)-1], model.Doc.Dir)
			p.declare(model.Doc)
		}
	}
	if !codes {
		return nil
	}
	_, err := p.offer(mergeTool)
	return err
}
