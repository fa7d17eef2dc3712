// Package junit makes the XML in which CI servers read test results.
package junit

import (
	"encoding/xml"
	"fmt"
)

// Document is all suites of a report.
type Document struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []Suite  `xml:"testsuite"`
}

// Suite is a group of cases. Sum sets its counts.
type Suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Skipped  int    `xml:"skipped,attr,omitempty"`
	Time     string `xml:"time,attr"`
	Cases    []Case `xml:"testcase"`
}

// Case is one result; with neither a failure nor a reason to be skipped it has passed.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	File    string   `xml:"file,attr"`
	Line    int      `xml:"line,attr,omitempty"`
	Time    string   `xml:"time,attr"`
	Failure *Failure `xml:"failure"`
	Skipped *Skipped `xml:"skipped"`
}

// Skipped is why a case was not carried out.
type Skipped struct {
	Message string `xml:"message,attr"`
}

// Failure is why a case failed, in a line and as a whole.
type Failure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Sum counts the cases of a suite, which have taken some microseconds.
func (s *Suite) Sum(micros int64) {
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	s.Time = Seconds(micros)
}

// Seconds are microseconds as the format has them.
func Seconds(micros int64) string { return fmt.Sprintf("%.6f", float64(micros)/1e6) }

// Marshal returns the document of suites. Characters that XML cannot hold are replaced.
func Marshal(suites []Suite) ([]byte, error) {
	out := Document{Suites: suites}
	for i := range suites {
		out.Tests += suites[i].Tests
		out.Failures += suites[i].Failures
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make a JUnit report: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}
