package agenttest

import (
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/policy/policytest"
	"agentctl.dev/agentctl/runner/tool"
)

// coverage collects what the runs have exercised of the declared policies and agents. What
// is shipped with agentctl is not counted.
type coverage struct {
	catalog *admission.Catalog

	mu       sync.Mutex
	policies map[string]*policytest.Seen
	judged   map[string]bool
	agents   map[string]map[string]bool
}

func newCoverage(catalog *admission.Catalog) *coverage {
	c := &coverage{catalog: catalog, policies: map[string]*policytest.Seen{}, judged: map[string]bool{}, agents: map[string]map[string]bool{}}
	for name := range catalog.Policies {
		if !catalog.Shipped(name) {
			c.policies[name] = &policytest.Seen{}
		}
	}
	return c
}

// trace takes what a policy said.
func (c *coverage) trace(name string, t policy.RuleTrace, result bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seen := c.policies[name]; seen != nil {
		c.judged[name] = true
		seen.Note(&c.catalog.Policies[name].Object.Spec, t, result)
	}
}

// run takes the calls of a run, whether they ran or were refused.
func (c *coverage) run(v *view.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	agent := v.Started.Agent
	if c.agents[agent] == nil {
		c.agents[agent] = map[string]bool{}
	}
	for _, m := range v.Messages {
		for _, call := range m.Calls() {
			c.agents[agent][call.Tool] = true
		}
	}
}

// report sums it up.
func (c *coverage) report() *report.Coverage {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &report.Coverage{Policies: []report.PolicyCoverage{}, Agents: []report.AgentCoverage{}, Percent: 100}
	for _, name := range sortedKeys(c.policies) {
		e := c.catalog.Policies[name]
		p := report.PolicyCoverage{Name: name, Position: e.Doc.Locate("metadata.name"), Judged: c.judged[name], Coverage: c.policies[name].Coverage(&e.Object.Spec, e.Doc.Locate)}
		out.Policies = append(out.Policies, p)
		out.Covered += p.Rules.Covered + p.Permissions.Covered
		out.Total += p.Rules.Total + p.Permissions.Total
	}
	for _, name := range sortedKeys(c.catalog.Agents) {
		a := c.agent(name)
		out.Agents = append(out.Agents, a)
		out.Covered += len(a.Called)
		out.Total += len(a.Called) + len(a.Missing) + 1
		if a.Run {
			out.Covered++
		}
	}
	if out.Total > 0 {
		out.Percent = 100 * float64(out.Covered) / float64(out.Total)
	}
	return out
}

func (c *coverage) agent(name string) report.AgentCoverage {
	called, ran := c.agents[name]
	a := report.AgentCoverage{Name: name, Position: c.catalog.Agents[name].Doc.Locate("metadata.name"), Run: ran, Called: []string{}, Missing: []string{}}
	tools, several := c.catalog.AgentTools(name)
	for _, t := range tools {
		if called[t] {
			a.Called = append(a.Called, t)
		} else {
			a.Missing = append(a.Missing, t)
		}
	}
	for _, of := range several { // one function of them counts for all
		if prefix := tool.FunctionName(of, ""); slices.ContainsFunc(sortedKeys(called), func(t string) bool { return strings.HasPrefix(t, prefix) }) {
			a.Called = append(a.Called, of)
		} else {
			a.Missing = append(a.Missing, of)
		}
	}
	return a
}
