package agenttest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/report"
)

// nameOf is the name by which a case is selected.
func nameOf(c *admission.PlannedCase) string {
	if c.Case == "" {
		return c.Test
	}
	return c.Test + "/" + c.Case
}

// choose returns the selected cases, in the order of the manifests.
func (s *set) choose() ([]admission.PlannedCase, error) {
	all := s.catalog.TestCases(s.manifests)
	if len(all) == 0 {
		return nil, reason.Usagef("the manifests hold no Test").WithHint("write one beside the agent, with its agentRef and what to expect: agentctl explain test.spec")
	}
	var tests, known []string
	for i := range all {
		tests, known = append(tests, all[i].Test), append(known, nameOf(&all[i]))
	}
	tests = slices.Compact(tests)
	for _, name := range s.Names {
		if !slices.Contains(tests, name) && !slices.Contains(known, name) {
			return nil, reason.Usagef("there is no test %q", name).WithHint(otherName(name, slices.Concat(tests, known)))
		}
	}
	chosen := slices.DeleteFunc(all, func(c admission.PlannedCase) bool {
		name := nameOf(&c)
		named := len(s.Names) == 0 || slices.Contains(s.Names, c.Test) || slices.Contains(s.Names, name)
		return !named || s.Only != nil && !s.Only.MatchString(name)
	})
	if len(chosen) == 0 {
		return nil, reason.Usagef("no case has a name that matches %s", s.Only).WithHint("there are " + listed(known))
	}
	if s.Update {
		return chosen, s.updatable(chosen)
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
func (s *set) updatable(chosen []admission.PlannedCase) error {
	of := map[string]string{}
	for i := range chosen {
		c := &chosen[i]
		file := s.cassetteOf(c)
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
func (s *set) cassetteOf(c *admission.PlannedCase) string {
	if c.Record != "" {
		return c.Record
	}
	return s.Engine.CassetteOf(cmp.Or(c.Model, s.ownModel(c)))
}

// ownModel is the Model of the agent of a case.
func (s *set) ownModel(c *admission.PlannedCase) string {
	return s.catalog.Agents[c.Agent].Object.Spec.ModelRef.Name
}

// columns are the pairs of models and policies to compare, or one of neither.
func (s *set) columns() ([]report.Column, error) {
	for _, name := range s.Models {
		if _, ok := s.catalog.Models[name]; !ok {
			return nil, reason.Usagef("--models: there is no Model %q", name).WithHint(otherName(name, sortedKeys(s.catalog.Models)))
		}
	}
	for _, name := range WithoutNone(s.Policies) {
		if _, ok := s.catalog.Policies[name]; !ok {
			return nil, reason.Usagef("--policy: there is no Policy %q", name).WithHint(otherName(name, slices.Concat(sortedKeys(s.catalog.Policies), policies.Names())))
		}
	}
	models, narrowing := s.Models, s.Policies
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

// WithoutNone leaves NoPolicy out.
func WithoutNone(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == NoPolicy })
}
