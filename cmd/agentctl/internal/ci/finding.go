package ci

import (
	"encoding/json"
	"math"
	"net/url"
	"path"
	"strings"
)

// maxFindings bounds the findings of an answer: GitHub shows 5,000 of a file.
const maxFindings = 5000

// Limits of the parts of a finding, in bytes.
const (
	maxMessage = 8 << 10
	maxWord    = 256
	maxPath    = 4 << 10
)

// Level is how bad a finding is, in the words of SARIF.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Finding is something that an agent, or a validation, has found at a place.
type Finding struct {
	// Rule is the name of what was looked for; "" is unknown.
	Rule    string
	Level   Level
	Message string
	// File is relative to the folder that was looked at; "" where there is no place in it.
	File string
	// Line and Column count from 1; 0 is unknown.
	Line, Column int
}

// Findings reads the member findings of the structured output of an agent. Entries that
// are no finding are left out, and counted.
func Findings(structured json.RawMessage) (found []Finding, omitted int) {
	var answer struct {
		Findings []json.RawMessage `json:"findings"`
	}
	if json.Unmarshal(structured, &answer) != nil {
		return nil, 0
	}
	for _, raw := range answer.Findings {
		f, ok := finding(raw)
		if !ok || len(found) == maxFindings {
			omitted++
			continue
		}
		found = append(found, f)
	}
	return found, omitted
}

// finding reads one entry: what it says, and what else it has. Agents that keep a heading
// and a text apart have a title and a body in place of the message.
func finding(raw json.RawMessage) (Finding, bool) {
	var entry map[string]any
	if json.Unmarshal(raw, &entry) != nil {
		return Finding{}, false
	}
	word := func(name string, most int) string {
		text, _ := entry[name].(string)
		return clip(line(text), most)
	}
	number := func(name string) int {
		n, _ := entry[name].(float64)
		if n < 1 || n > math.MaxInt32 || n != math.Trunc(n) {
			return 0
		}
		return int(n)
	}
	var said []string
	for _, names := range [][]string{{"message"}, {"title", "body"}} {
		for _, name := range names {
			if text, _ := entry[name].(string); strings.TrimSpace(text) != "" {
				said = append(said, strings.TrimSpace(text))
			}
		}
		if len(said) > 0 {
			break
		}
	}
	text := strings.Join(said, "\n")
	named, _ := entry["file"].(string)
	f := NewFinding(word("rule", maxWord), level(word("severity", maxWord)), text, named, number("line"), number("column"))
	return f, text != ""
}

// NewFinding makes a finding of texts that are not trusted. A file that is not in the
// folder is no place, and is named in the message.
func NewFinding(rule string, l Level, message, file string, at, column int) Finding {
	f := Finding{Rule: rule, Level: l, Message: clip(strings.TrimSpace(prose(message)), maxMessage), File: below(file), Line: at, Column: column}
	if f.File == "" {
		f.Line, f.Column = 0, 0
		if file != "" { // still worth reading
			f.Message = clip(line(file)+": "+f.Message, maxMessage)
		}
	}
	return f
}

// level reads a severity as people and models write it.
func level(severity string) Level {
	switch strings.ToLower(severity) {
	case "error", "critical", "blocker", "high", "fatal":
		return Error
	case "note", "info", "information", "informational", "notice", "low", "minor", "hint", "suggestion":
		return Note
	}
	return Warning
}

// below is the path of a file below the folder that was looked at, with slashes; "" if it
// is not in there, or no path.
func below(file string) string {
	clean := path.Clean(file)
	if file == "" || len(file) > maxPath || clean == "." || clean == ".." || line(file) != file ||
		strings.HasPrefix(clean, "/") || strings.HasPrefix(clean, "../") || strings.ContainsAny(file, "\\") {
		return ""
	}
	return clean
}

// uri is the path of a file as a relative reference.
func uri(file string) string { return (&url.URL{Path: file}).String() }
