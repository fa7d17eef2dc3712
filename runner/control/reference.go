package control

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// reference is a name in a spec.
type reference struct{ kind, name string }

// references are what an object names.
func references(obj client.Object) []reference {
	var refs []reference
	add := func(kind, name string) {
		if name != "" {
			refs = append(refs, reference{kind, name})
		}
	}
	switch o := obj.(type) {
	case *v1alpha1.Agent:
		add(v1alpha1.KindModel, o.Spec.ModelRef.Name)
		if m := o.Spec.Context.ModelRef; m != nil {
			add(v1alpha1.KindModel, m.Name)
		}
		for _, t := range o.Spec.Tools {
			add(v1alpha1.KindTool, t.Name)
		}
		for _, p := range o.Spec.PolicyRefs {
			add(v1alpha1.KindPolicy, p.Name)
		}
		for _, s := range o.Spec.Skills {
			add(v1alpha1.KindSkill, s.Name)
		}
		for _, a := range o.Spec.Subagents {
			add(v1alpha1.KindAgent, a.Name)
		}
	case *v1alpha1.Model:
		for _, m := range o.Spec.Fallbacks {
			add(v1alpha1.KindModel, m.Name)
		}
	case *v1alpha1.Tool:
		if facts, _ := sources.All().Facts(&o.Spec); facts.Agent != "" { // an unknown shipped tool names no agent
			add(v1alpha1.KindAgent, facts.Agent)
		}
	case *v1alpha1.Run:
		add(v1alpha1.KindAgent, o.Spec.AgentRef.Name)
		if s := o.Spec.SkillRef; s != nil {
			add(v1alpha1.KindSkill, s.Name)
		}
		for _, p := range o.Spec.PolicyRefs {
			add(v1alpha1.KindPolicy, p.Name)
		}
		if w := o.Spec.WorkspaceRef; w != nil {
			add(v1alpha1.KindWorkspace, w.Name)
		}
	case *v1alpha1.Test:
		add(v1alpha1.KindAgent, o.Spec.AgentRef.Name)
		if m := o.Spec.ModelRef; m != nil {
			add(v1alpha1.KindModel, m.Name)
		}
		for _, m := range o.Spec.Models {
			add(v1alpha1.KindAgent, m.Agent)
			add(v1alpha1.KindModel, m.ModelRef.Name)
		}
		for _, p := range o.Spec.PolicyRefs {
			add(v1alpha1.KindPolicy, p.Name)
		}
		for i := range o.Spec.Cases {
			if m := o.Spec.Cases[i].ModelRef; m != nil {
				add(v1alpha1.KindModel, m.Name)
			}
		}
	}
	return refs
}

// shipped reports whether a reference needs no object, because its target is part of the
// program.
func shipped(r reference) bool {
	switch r.kind {
	case v1alpha1.KindTool:
		t, ok := builtin.Lookup(r.name)
		return ok && t.Endpoint == ""
	case v1alpha1.KindPolicy:
		return slices.Contains(policies.Names(), r.name)
	}
	return false
}

func (r reference) key() string { return r.kind + "/" + r.name }

func referenceKeys(obj client.Object) []string {
	refs := references(obj)
	keys := make([]string, len(refs))
	for i, r := range refs {
		keys[i] = r.key()
	}
	return keys
}
