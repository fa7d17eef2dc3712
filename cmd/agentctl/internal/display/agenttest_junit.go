package display

import (
	"strings"

	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
	"agentctl.dev/agentctl/runner/agenttest/report"
)

// WriteJUnit writes a suite for each test of each column, with a case for each of its cases. A
// regression without a case of its own is a case that fails, and so is coverage that does
// not suffice.
func (t AgentTests) WriteJUnit(s *Screen) error {
	var suites []junit.Suite
	var total int64
	for i := range t.Results {
		c := &t.Results[i]
		name := "test/" + c.Test
		if len(t.Columns) > 1 {
			name += " (" + columnName(c.Model, c.Policy) + ")"
		}
		if len(suites) == 0 || suites[len(suites)-1].Name != name {
			t.close(suites, total)
			suites, total = append(suites, junit.Suite{Name: name}), 0
		}
		suite := &suites[len(suites)-1]
		suite.Cases = append(suite.Cases, t.junit(c, name))
		total += c.DurationMs * 1000
	}
	t.close(suites, total)
	if whole := t.whole(); len(whole.Cases) > 0 {
		whole.Sum(0)
		suites = append(suites, whole)
	}
	return writeSuites(s, suites)
}

// close sums up the last suite.
func (t AgentTests) close(suites []junit.Suite, micros int64) {
	if len(suites) > 0 {
		suites[len(suites)-1].Sum(micros)
	}
}

func (t AgentTests) junit(c *report.Case, suite string) junit.Case {
	one := junit.Case{Name: c.Case, Class: suite, File: c.Position.File, Line: c.Position.Line, Time: junit.Seconds(c.DurationMs * 1000)}
	if one.Name == "" {
		one.Name = c.Test
	}
	switch {
	case c.NotRun != "":
		one.Skipped = &junit.Skipped{Message: c.NotRun}
	case !c.Pass:
		one.Failure = &junit.Failure{Message: Line(brief(c)), Text: strings.TrimSpace(t.failed(c))}
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
func (t AgentTests) whole() junit.Suite {
	suite := junit.Suite{Name: "tests"}
	fail := func(name, message string) {
		suite.Cases = append(suite.Cases, junit.Case{Name: name, Class: suite.Name, Time: junit.Seconds(0), Failure: &junit.Failure{Message: message, Text: message}})
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
