package admission

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/preset"
)

// presets completes the agents that name a preset: what an agent says itself wins, field by
// field. All that judges an agent sees it complete.
func (a *admitter) presets() {
	for _, name := range names(a.catalog.Agents) {
		e := a.catalog.Agents[name]
		file, text, ok := preset.Lookup(e.Object.Spec.Preset)
		if !ok {
			continue // the schema refuses other names
		}
		set, found := manifest.Parse(context.Background(), file, text)
		a.found = append(a.found, found...) // a test ensures that there are none
		for _, d := range set.Documents {
			if shipped, ok := d.Object.(*v1alpha1.Agent); ok {
				complete(&e.Object.Spec, &shipped.Spec)
			}
		}
	}
}

// complete fills in what an agent leaves to its preset. The instructions follow with the
// model, which is not known yet.
func complete(own, shipped *v1alpha1.AgentSpec) {
	own.Description = cmp.Or(own.Description, shipped.Description)
	if own.Tools == nil {
		own.Tools = shipped.Tools
	}
	if own.PolicyRefs == nil {
		own.PolicyRefs = shipped.PolicyRefs
	}
	if own.ContextFiles == nil {
		own.ContextFiles = shipped.ContextFiles
	}
}

// planPreset writes the instructions of a preset for the model of the plan.
func planPreset(p *Plan) {
	spec := &p.Agent.Spec
	file, text, ok := preset.Lookup(spec.Preset)
	if !ok || spec.Instructions != "" {
		return
	}
	set, _ := manifest.Parse(context.Background(), file, text)
	for _, d := range set.Documents {
		if shipped, ok := d.Object.(*v1alpha1.Agent); ok {
			spec.Instructions = preset.Base(p.Model.Spec.Model) + "\n\n" + strings.TrimSpace(shipped.Spec.Instructions)
		}
	}
}

// narrower is what an agent leaves of the access of a Tool: it cannot add to it.
func narrower(tool, entry v1alpha1.WorkspaceAccess) v1alpha1.WorkspaceAccess {
	rank := func(a v1alpha1.WorkspaceAccess) int {
		return slices.Index([]v1alpha1.WorkspaceAccess{v1alpha1.AccessNone, v1alpha1.AccessReadOnly, v1alpha1.AccessReadWrite}, a)
	}
	if entry != "" && rank(entry) < rank(tool) {
		return entry
	}
	return tool
}

// compactor is the model of the first agent with the preset compaction: it writes the
// summaries of all agents that name no model for them.
func (c *Catalog) compactor() *v1alpha1.Reference {
	for _, name := range names(c.Agents) {
		if spec := &c.Agents[name].Object.Spec; spec.Preset == "compaction" {
			return &spec.ModelRef
		}
	}
	return nil
}
