package agenttest

import (
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/model/provider"
)

// nameOf is the name by which a case is selected.
func nameOf(c *admission.PlannedCase) string {
	if c.Case == "" {
		return c.Test
	}
	return c.Test + "/" + c.Case
}

// choose returns the selected cases, in the order of the manifests.
func (o *Options) choose(m *runner.Manifests) ([]admission.PlannedCase, error) {
	all := m.Catalog.TestCases(m.Set)
	if len(all) == 0 {
		return nil, reason.Usagef("the manifests hold no Test").WithHint("write one beside the agent, with its agentRef and what to expect: agentctl explain test.spec")
	}
	var tests, known []string
	for i := range all {
		tests, known = append(tests, all[i].Test), append(known, nameOf(&all[i]))
	}
	tests = slices.Compact(tests)
	for _, name := range o.Names {
		if !slices.Contains(tests, name) && !slices.Contains(known, name) {
			return nil, reason.Usagef("there is no test %q", name).WithHint(otherName(name, slices.Concat(tests, known)))
		}
	}
	chosen := slices.DeleteFunc(all, func(c admission.PlannedCase) bool {
		name := nameOf(&c)
		named := len(o.Names) == 0 || slices.Contains(o.Names, c.Test) || slices.Contains(o.Names, name)
		return !named || o.Only != nil && !o.Only.MatchString(name)
	})
	if len(chosen) == 0 {
		return nil, reason.Usagef("no case has a name that matches %s", o.Only).WithHint("there are " + listed(known))
	}
	if o.Update {
		return chosen, o.updatable(m, chosen)
	}
	return chosen, nil
}

// otherName is what a name that does not exist may have meant.
func otherName(name string, known []string) string {
	if near := reason.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + listed(known)
}

// mostListed bounds the names in a hint.
const mostListed = 8

func listed(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if more := len(names) - mostListed; more > 0 {
		return strings.Join(names[:mostListed], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// updatable refuses an update of cases that could not be recorded: of none with a cassette,
// or of several into one.
func (o *Options) updatable(m *runner.Manifests, chosen []admission.PlannedCase) error {
	of := map[string]string{}
	for i := range chosen {
		c := &chosen[i]
		file := cassetteOf(m, c)
		if file == "" {
			continue
		}
		if other, taken := of[file]; taken {
			return reason.Usagef("%s and %s have one cassette, %s: it holds one run", other, nameOf(c), shown(file)).WithHint("give each case a record of its own")
		}
		of[file] = nameOf(c)
	}
	if len(of) == 0 {
		return reason.Usagef("none of the selected tests has a cassette to record").WithHint("name one in spec.record, or a Model with a cassette in spec.modelRef")
	}
	return nil
}

// cassetteOf is the cassette of a case: its record, or that of its Model.
func cassetteOf(m *runner.Manifests, c *admission.PlannedCase) string {
	if c.Record != "" {
		return c.Record
	}
	return m.Catalog.CassetteOf(modelOf(m, c), provider.All())
}

// modelOf is the Model that answers a case.
func modelOf(m *runner.Manifests, c *admission.PlannedCase) string {
	if c.Model != "" {
		return c.Model
	}
	return m.Catalog.Agents[c.Agent].Object.Spec.ModelRef.Name
}

// columns are the pairs of models and policies to compare, or one of neither.
func (o *Options) columns(m *runner.Manifests) ([]report.Column, error) {
	for _, name := range o.Models {
		if _, ok := m.Catalog.Models[name]; !ok {
			return nil, reason.Usagef("--models: there is no Model %q", name).WithHint(otherName(name, sortedKeys(m.Catalog.Models)))
		}
	}
	for _, name := range withoutNone(o.Policies) {
		if _, ok := m.Catalog.Policies[name]; !ok {
			return nil, reason.Usagef("--policy: there is no Policy %q", name).WithHint(otherName(name, slices.Concat(sortedKeys(m.Catalog.Policies), policies.Names())))
		}
	}
	models, narrowing := o.Models, o.Policies
	if len(models) == 0 {
		models = []string{""}
	}
	if len(narrowing) == 0 {
		narrowing = []string{NoPolicy}
	}
	var all []report.Column
	for _, model := range models {
		for _, policy := range narrowing {
			if policy == NoPolicy {
				policy = ""
			}
			if c := (report.Column{Model: model, Policy: policy}); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// withoutNone leaves out the word for no policy.
func withoutNone(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == NoPolicy })
}
