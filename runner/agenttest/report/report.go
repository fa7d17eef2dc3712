// Package report holds what the tests of agents have shown: plain data for terminals, CI servers and later comparisons.
package report

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy/policytest"
	"agentctl.dev/agentctl/runner/replay"
)

// Report is what a set of tests has shown.
type Report struct {
	// Tests and Cases that were selected; each case counts once in every column.
	Tests  int `json:"tests"`
	Cases  int `json:"cases"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	// NotRun are cases that --fail-fast has left out.
	NotRun int `json:"notRun"`
	// DurationMs is the time by the clock on the wall.
	DurationMs int64 `json:"durationMs"`
	// Columns are the models and policies that the cases were run with; one where nothing is
	// compared.
	Columns []Column `json:"columns"`
	// Results are in the order of the columns, and in each of the manifests.
	Results []Case `json:"results"`
	// Coverage is nil when it was not asked for.
	Coverage *Coverage `json:"coverage,omitempty"`
	// Comparison with an earlier report; nil when there is none.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Column is the set of cases run with one model and one policy.
type Column struct {
	// Model has answered in place of that of each test; "" has not.
	Model string `json:"model"`
	// Policy narrows all runs; "" is none.
	Policy string `json:"policy"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
	NotRun int    `json:"notRun"`
	Used
}

// Used is what runs took.
type Used struct {
	Steps  int   `json:"steps"`
	Tokens int64 `json:"tokens"`
	// Cost in US dollars; Unpriced says that some prices are not known, or that the tokens of
	// some answers are not.
	Cost     message.Cost `json:"cost"`
	Unpriced bool         `json:"unpriced"`
	// DurationMs is that of the runs, added up.
	DurationMs int64 `json:"durationMs"`
}

// Add adds what other runs took.
func (u *Used) Add(o Used) {
	u.Steps += o.Steps
	u.Tokens += o.Tokens
	u.Cost += o.Cost
	u.Unpriced = u.Unpriced || o.Unpriced
	u.DurationMs += o.DurationMs
}

// Case is how one case went in one column.
type Case struct {
	// Test is the name of the Test, Case that of its case; "" where it has none.
	Test string `json:"test"`
	Case string `json:"case,omitempty"`
	// Model and Policy are those of the column.
	Model  string `json:"model,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Position of the case in its manifest.
	Position manifest.Position `json:"position"`
	Agent    string            `json:"agent"`
	Pass     bool              `json:"pass"`
	// NotRun is why the case was not run; "" if it was. It has not passed then.
	NotRun string `json:"notRun,omitempty"`
	// Problem is why the run says nothing about the agent: it could not begin, its cassette
	// is damaged, or it has diverged from it. Hint is how to go on.
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// ExitCode is that of the problem; 0 without one.
	ExitCode int `json:"exitCode,omitempty"`
	// Expectations in their order.
	Expectations []Expectation `json:"expectations"`

	// Phase, Reason, Message and Output are those of the run.
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Output  string `json:"output,omitempty"`
	Used

	// Cassette is the file that the run was replayed from, or recorded into.
	Cassette string `json:"cassette,omitempty"`
	// Divergence is where a replay is not what was recorded.
	Divergence *replay.Divergence `json:"divergence,omitempty"`
	// Notes are what a replay does not show.
	Notes []string `json:"notes,omitempty"`
	// Change is what a new recording changes; nil for one that there was none before.
	Change *replay.Change `json:"change,omitempty"`
	// Recorded is true if the cassette was written.
	Recorded bool `json:"recorded,omitempty"`
	// Kept is the state folder of the run; "" if it is gone.
	Kept string `json:"kept,omitempty"`
}

// Name is the name by which the case is selected.
func (c *Case) Name() string {
	if c.Case == "" {
		return c.Test
	}
	return c.Test + "/" + c.Case
}

// Expectation is what came of one expectation.
type Expectation struct {
	Name       string            `json:"name,omitempty"`
	Expression string            `json:"expression"`
	Position   manifest.Position `json:"position"`
	Pass       bool              `json:"pass"`
	// Message is that of the manifest.
	Message string `json:"message,omitempty"`
	// Error is why the expression could not be evaluated.
	Error string `json:"error,omitempty"`
	// Values of its parts, the whole first, where it is not met.
	Values []expect.Value `json:"values,omitempty"`
	// Implied is true for the expectation that nobody wrote: the run succeeds.
	Implied bool `json:"implied,omitempty"`
}

// Coverage is what the runs of the tests have exercised.
type Coverage struct {
	// Percent of all parts that were exercised.
	Percent  float64          `json:"percent"`
	Covered  int              `json:"covered"`
	Total    int              `json:"total"`
	Policies []PolicyCoverage `json:"policies"`
	Agents   []AgentCoverage  `json:"agents"`
}

// PolicyCoverage is what the runs have seen of a policy. A rule is covered when it was true
// once and false once, an entry of permissions when it won once.
type PolicyCoverage struct {
	Name     string            `json:"name"`
	Position manifest.Position `json:"position"`
	// Judged is false for a policy that has judged no call.
	Judged bool `json:"judged"`
	policytest.Coverage
}

// AgentCoverage is what the runs have seen of an agent: whether it was run, and which of its
// tools were called.
type AgentCoverage struct {
	Name     string            `json:"name"`
	Position manifest.Position `json:"position"`
	Run      bool              `json:"run"`
	// Called and Missing are call names of its tools.
	Called  []string `json:"called"`
	Missing []string `json:"missing"`
}

// add counts a case.
func (r *Report) add(c *Case, column *Column) {
	switch {
	case c.NotRun != "":
		r.NotRun++
		column.NotRun++
	case c.Pass:
		r.Passed++
		column.Passed++
	default:
		r.Failed++
		column.Failed++
	}
	column.Add(c.Used)
}

// Sum counts the results, which belong to the columns in their order.
func (r *Report) Sum() {
	tests := map[string]bool{}
	for i := range r.Results {
		c := &r.Results[i]
		tests[c.Test] = true
		for k := range r.Columns {
			if column := &r.Columns[k]; column.Model == c.Model && column.Policy == c.Policy {
				r.add(c, column)
			}
		}
	}
	r.Tests, r.Cases = len(tests), len(r.Results)
}
