package ci

import (
	"encoding/json"
	"fmt"
	"time"
)

// section is a marker of a collapsed part of a job's log.
func section(what, name, head string, at time.Time) string {
	return fmt.Sprintf("\x1b[0Ksection_%s:%d:%s\r\x1b[0K%s\n", what, at.Unix(), name, head)
}

type qualityFinding struct {
	Description string          `json:"description"`
	Check       string          `json:"check_name"`
	Fingerprint string          `json:"fingerprint"`
	Severity    string          `json:"severity"`
	Location    qualityLocation `json:"location"`
}

type qualityLocation struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

// quality is a report of GitLab's Code Quality. It has only findings in files.
func quality(found []Finding) ([]byte, error) {
	all, same := []qualityFinding{}, map[string]int{}
	words := map[Level]string{Error: "critical", Warning: "minor", Note: "info"}
	for _, f := range found {
		if f.File == "" {
			continue
		}
		sum := fingerprint(&f)
		same[sum]++
		q := qualityFinding{
			Description: line(f.Message), Check: f.Rule, Severity: words[f.Level],
			Fingerprint: fmt.Sprintf("%s-%d", sum, same[sum]), Location: qualityLocation{Path: f.File},
		}
		if q.Check == "" {
			q.Check = unnamed
		}
		q.Location.Lines.Begin = max(1, f.Line)
		all = append(all, q)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make a code quality report: %w", err)
	}
	return append(text, '\n'), nil
}
