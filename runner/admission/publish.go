package admission

import (
	"errors"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/publish/item"
	"agentctl.dev/agentctl/runner/schema"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// publications checks where an agent's items go. What names an input is known when a run
// begins.
func (a *admitter) publications(d *manifest.Document, ag *v1alpha1.Agent) {
	for i := range ag.Spec.Publish {
		p, at := &ag.Spec.Publish[i], manifest.Index("spec.publish", i)
		if d.Faulty(at) || p.Type == v1alpha1.PublishWebhook && p.URL == "" || p.Type != v1alpha1.PublishWebhook && p.Forge == nil ||
			p.Type == v1alpha1.PublishComment && p.Forge != nil && p.Forge.Number == "" { // which the schema reports
			continue
		}
		if _, err := item.Resolve(p, a.placeholders(ag, p)); err != nil {
			field := at + ".url"
			if p.Forge != nil {
				field = at + ".forge"
			}
			a.add(d.Errorf(field, "%v", err).With("the target is declared here: numbers and repositories may come from ${inputs.NAME}, servers may not"))
		}
	}
	lists := slices.ContainsFunc(ag.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == builtin.Publish })
	if _, declared := a.catalog.Tools[builtin.Publish]; lists && !declared && len(ag.Spec.Publish) == 0 {
		a.add(d.Warnf("spec.tools", "the tool publish prepares publications, and the agent declares none").With("declare them in spec.publish"))
	}
}

// placeholders puts a number, which is also part of a name, in the place of every declared
// input, and a repository where an input is all of it.
func (a *admitter) placeholders(ag *v1alpha1.Agent, p *v1alpha1.Publication) func(string) (string, error) {
	return func(text string) (string, error) {
		if !strings.Contains(text, "${inputs.") {
			return text, nil
		}
		whole := text == p.Forge.Repository
		var declared []string
		if in := ag.Spec.Inputs; in != nil {
			if compiled, err := schema.Compile(in.Schema.Raw); err == nil {
				declared = compiled.Properties()
			}
		}
		for _, name := range declared {
			text = strings.ReplaceAll(text, "${inputs."+name+"}", "1")
		}
		if strings.Contains(text, "${inputs.") {
			return "", errors.New("it names an input that spec.inputs.schema does not declare")
		}
		if text == "1" && whole {
			return "owner/repository", nil
		}
		return text, nil
	}
}

// planPublish offers the tool that prepares items, unless the agent lists it itself.
func planPublish(p *Plan) error {
	if len(p.Agent.Spec.Publish) == 0 ||
		slices.ContainsFunc(p.Tools, func(t PlannedTool) bool { return builtin.Named(&t.Tool.Spec.Source) == builtin.Publish }) {
		return nil
	}
	t, err := shipped(builtin.Publish)
	if err != nil {
		return err
	}
	materialise(t)
	p.Tools = append(p.Tools, PlannedTool{Tool: t})
	return nil
}
