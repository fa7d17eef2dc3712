package display

import (
	"encoding/xml"
	"fmt"
	"strings"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr,omitempty"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a suite for each policy. A mutant that no case notices is a
// case of its own that fails.
func (p PolicyTests) WriteJUnit(s *Screen) error {
	var suites []junitSuite
	for i := range p.Policies {
		suites = append(suites, p.junit(i))
	}
	return writeSuites(s, suites)
}

// writeSuites writes suites as a CI server reads them.
func writeSuites(s *Screen, suites []junitSuite) error {
	out := junitSuites{Suites: suites}
	for i := range suites {
		out.Tests += suites[i].Tests
		out.Failures += suites[i].Failures
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.Write(append([]byte(xml.Header), append(text, '\n')...))
	return err
}

func (p PolicyTests) junit(i int) junitSuite {
	r := &p.Policies[i]
	suite := junitSuite{Name: "policy/" + r.Name}
	var total int64
	for j := range r.Cases {
		c := &r.Cases[j]
		total += c.DurationMicros
		one := junitCase{Name: c.Name, Class: suite.Name, File: c.Position.File, Line: c.Position.Line, Time: seconds(c.DurationMicros)}
		if !c.Pass {
			one.Failure = &junitFailure{Message: fmt.Sprintf("want %s, got %s", c.Want.Action, c.Problem), Text: strings.TrimSpace(p.failed(i, j))}
			if c.Got != nil {
				one.Failure.Message = fmt.Sprintf("want %s, got %s", c.Want.Action, strings.TrimSuffix(string(c.Got.Action)+" by "+c.Got.Rule, " by "))
			}
		}
		suite.Cases = append(suite.Cases, one)
	}
	if r.Mutation != nil {
		for _, x := range r.Mutation.Survivors {
			suite.Cases = append(suite.Cases, junitCase{
				Name: "mutant: " + x.Change, Class: suite.Name, File: x.Position.File, Line: x.Position.Line, Time: seconds(0),
				Failure: &junitFailure{Message: "no case fails with this change", Text: x.Position.String() + ": " + x.Change},
			})
		}
	}
	suite.sum(total)
	return suite
}

// sum counts the cases of a suite, which have taken some time.
func (s *junitSuite) sum(micros int64) {
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	s.Time = seconds(micros)
}

func seconds(micros int64) string { return fmt.Sprintf("%.6f", float64(micros)/1e6) }
