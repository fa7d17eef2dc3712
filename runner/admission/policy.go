package admission

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

func (a *admitter) policy(d *manifest.Document, p *v1alpha1.Policy) {
	if p.Spec.AppliesTo != nil && p.Spec.AppliesTo.AgentSelector == nil {
		a.add(d.Warnf("spec.appliesTo", "selects no agent").As(manifest.RuleNeverMatches).With("write agentSelector: {} to select every agent"))
	}
	if p.Spec.AppliesTo != nil && p.Spec.AppliesTo.AgentSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(p.Spec.AppliesTo.AgentSelector); err != nil {
			a.add(d.Errorf("spec.appliesTo.agentSelector", "%v", err))
		}
	}
	rules := map[string]int{}
	for i, r := range p.Spec.Rules {
		at := manifest.Index("spec.rules", i)
		a.unique(d, rules, "rule", "spec.rules", i, r.Name)
		a.redact(d, at, r)
	}
	a.cases(d, p.Spec.Tests, p)
}

func ruleNames(p *v1alpha1.Policy) []string {
	all := make([]string, 0, len(p.Spec.Rules))
	for _, r := range p.Spec.Rules {
		all = append(all, r.Name)
	}
	return all
}

func (a *admitter) unique(d *manifest.Document, seen map[string]int, noun, list string, i int, name string) {
	if name == "" {
		return
	}
	if before, ok := seen[name]; ok {
		line := d.Locate(manifest.Index(list, before) + ".name").Line
		a.add(d.Errorf(manifest.Index(list, i)+".name", "%s", fmt.Sprintf("%s %q is declared twice: the first time in line %d", noun, clip(name), line)))
		return
	}
	seen[name] = i
}

// redact checks that a rule has removals exactly when its action is redact.
func (a *admitter) redact(d *manifest.Document, at string, r v1alpha1.Rule) {
	removes := r.Redact != nil && (r.Redact.Secrets || len(r.Redact.Fields) > 0)
	switch {
	case r.Action == v1alpha1.ActionRedact && !removes && !d.Faulty(at):
		a.add(d.Errorf(at+".action", "a redact rule says what it removes").At(at + ".redact").With("write redact: {secrets: true} or redact: {fields: [...]}"))
	case r.Action != v1alpha1.ActionRedact && r.Action != "" && r.Redact != nil:
		a.add(d.Errorf(at+".redact", "has no effect: the action is %s", r.Action).With("remove it, or write action: redact"))
	}
}
