package display

import (
	"strings"

	"agentctl.dev/agentctl/runner/agenttest/report"
)

// WriteJUnit writes a suite for each test of each column, with a case for each of its cases. A
// regression without a case of its own is a case that fails, and so is coverage that does
// not suffice.
func (t AgentTests) WriteJUnit(s *Screen) error {
	var suites []junitSuite
	var total int64
	for i := range t.Results {
		c := &t.Results[i]
		name := "test/" + c.Test
		if len(t.Columns) > 1 {
			name += " (" + columnName(c.Model, c.Policy) + ")"
		}
		if len(suites) == 0 || suites[len(suites)-1].Name != name {
			t.close(suites, total)
			suites, total = append(suites, junitSuite{Name: name}), 0
		}
		suite := &suites[len(suites)-1]
		suite.Cases = append(suite.Cases, t.junit(c, name))
		total += c.DurationMs * 1000
	}
	t.close(suites, total)
	if whole := t.whole(); len(whole.Cases) > 0 {
		whole.sum(0)
		suites = append(suites, whole)
	}
	return writeSuites(s, suites)
}

// close sums up the last suite.
func (t AgentTests) close(suites []junitSuite, micros int64) {
	if len(suites) > 0 {
		suites[len(suites)-1].sum(micros)
	}
}

func (t AgentTests) junit(c *report.Case, suite string) junitCase {
	one := junitCase{Name: c.Case, Class: suite, File: c.Position.File, Line: c.Position.Line, Time: seconds(c.DurationMs * 1000)}
	if one.Name == "" {
		one.Name = c.Test
	}
	switch {
	case c.NotRun != "":
		one.Skipped = &junitSkipped{Message: c.NotRun}
	case !c.Pass:
		one.Failure = &junitFailure{Message: Line(brief(c)), Text: strings.TrimSpace(t.failed(c))}
	}
	return one
}

// brief is why a case failed, in one line.
func brief(c *report.Case) string {
	if c.Problem != "" {
		return c.Problem
	}
	for i := range c.Expectations {
		if e := &c.Expectations[i]; !e.Pass {
			switch {
			case e.Message != "":
				return e.Message
			case e.Error != "":
				return e.Expression + ": " + e.Error
			}
			return "not met: " + e.Expression
		}
	}
	return "failed"
}

// whole are the failures that are not those of one case.
func (t AgentTests) whole() junitSuite {
	suite := junitSuite{Name: "tests"}
	fail := func(name, message string) {
		suite.Cases = append(suite.Cases, junitCase{Name: name, Class: suite.Name, Time: seconds(0), Failure: &junitFailure{Message: message, Text: message}})
	}
	if c := t.Coverage; c != nil && c.Percent < t.Least {
		fail("coverage", percent(c.Percent)+" % is less than "+percent(t.Least)+" %")
	}
	if t.Comparison != nil {
		for _, r := range t.Comparison.Regressions {
			if r.Case == "" {
				fail(r.What+" ("+columnName(r.Model, r.Policy)+")", r.Before+" before, now "+r.Now)
			}
		}
	}
	return suite
}
