package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
)

// WriteJUnit writes a suite for each policy. A mutant that no case notices is a
// case of its own that fails.
func (p PolicyTests) WriteJUnit(s *Screen) error {
	var suites []junit.Suite
	for i := range p.Policies {
		suites = append(suites, p.junit(i))
	}
	return writeSuites(s, suites)
}

// writeSuites writes suites as a CI server reads them.
func writeSuites(s *Screen, suites []junit.Suite) error {
	text, err := junit.Marshal(suites)
	if err != nil {
		return err
	}
	_, err = s.Write(text)
	return err
}

func (p PolicyTests) junit(i int) junit.Suite {
	r := &p.Policies[i]
	suite := junit.Suite{Name: "policy/" + r.Name}
	var total int64
	for j := range r.Cases {
		c := &r.Cases[j]
		total += c.DurationMicros
		one := junit.Case{Name: c.Name, Class: suite.Name, File: c.Position.File, Line: c.Position.Line, Time: junit.Seconds(c.DurationMicros)}
		if !c.Pass {
			one.Failure = &junit.Failure{Message: fmt.Sprintf("want %s, got %s", c.Want.Action, c.Problem), Text: strings.TrimSpace(p.failed(i, j))}
			if c.Got != nil {
				one.Failure.Message = fmt.Sprintf("want %s, got %s", c.Want.Action, strings.TrimSuffix(string(c.Got.Action)+" by "+c.Got.Rule, " by "))
			}
		}
		suite.Cases = append(suite.Cases, one)
	}
	if r.Mutation != nil {
		for _, x := range r.Mutation.Survivors {
			suite.Cases = append(suite.Cases, junit.Case{
				Name: "mutant: " + x.Change, Class: suite.Name, File: x.Position.File, Line: x.Position.Line, Time: junit.Seconds(0),
				Failure: &junit.Failure{Message: "no case fails with this change", Text: x.Position.String() + ": " + x.Change},
			})
		}
	}
	suite.Sum(total)
	return suite
}
