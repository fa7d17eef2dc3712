package display

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
	"agentctl.dev/agentctl/runner/pluginkit"
)

// PluginTest says which promises a tool's program keeps.
type PluginTest struct {
	*pluginkit.Report
	// Command is the program as it was named.
	Command string
}

// outcome is the word for what came of a check.
func outcome(s *Screen, c *pluginkit.Check) string {
	switch c.Outcome {
	case "passed":
		return s.paint(green, "ok  ")
	case "skipped":
		return s.paint(dim, "skip")
	default:
		return s.paint(red, "FAIL")
	}
}

// WriteText writes a line for each promise, and below a broken one what was
// expected and how to fix it.
func (p PluginTest) WriteText(s *Screen) error {
	width := 0
	for i := range p.Checks {
		width = max(width, len(p.Checks[i].Name))
	}
	var b strings.Builder
	for i := range p.Checks {
		c := &p.Checks[i]
		took := time.Duration(c.DurationMicros) * time.Microsecond
		fmt.Fprintf(&b, "%s  %s  %s\n", outcome(s, c), pad(Line(c.Name), width), s.paint(dim, duration(took)))
		switch c.Outcome {
		case "failed":
			fmt.Fprintf(&b, "      expected  %s\n      instead   %s\n      to fix    %s\n", Line(c.Promise), indented(c.Problem), Line(c.Mend))
		case "skipped":
			fmt.Fprintf(&b, "      %s\n", s.paint(dim, Line(c.Problem)))
		default:
		}
	}
	tools := ""
	if len(p.Tools) > 0 {
		tools = " (" + Line(strings.Join(p.Tools, ", ")) + ")"
	}
	fmt.Fprintf(&b, "%s%s: %d passed, %d failed, %d skipped\n", Line(p.Command), tools, p.Passed, p.Failed, p.Skipped)
	return Text(s, strings.TrimSuffix(b.String(), "\n"))
}

// indented keeps a problem's lines, for example a program's last words, below
// each other.
func indented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return strings.Join(lines, "\n                ")
}

// WriteJUnit writes one suite, a case for each promise.
func (p PluginTest) WriteJUnit(s *Screen) error {
	suite := junit.Suite{Name: "plugin/" + filepath.Base(p.Program)}
	var total int64
	for i := range p.Checks {
		c := &p.Checks[i]
		total += c.DurationMicros
		one := junit.Case{Name: c.Name, Class: suite.Name, File: p.Command, Time: junit.Seconds(c.DurationMicros)}
		switch c.Outcome {
		case "failed":
			one.Failure = &junit.Failure{Message: Line(c.Problem), Text: "expected: " + c.Promise + "\ninstead: " + Clean(c.Problem) + "\nto fix: " + c.Mend}
		case "skipped":
			one.Skipped = &junit.Skipped{Message: Line(c.Problem)}
		default:
		}
		suite.Cases = append(suite.Cases, one)
	}
	suite.Sum(total)
	return writeSuites(s, []junit.Suite{suite})
}

// PluginAnswer writes what a tool answered: the output to stdout, what a person
// should know besides it to stderr.
func PluginAnswer(stdout, stderr *Screen, a *pluginkit.Answer) error {
	var notes []string
	if a.Error != "" {
		notes = append(notes, "error: "+Line(string(a.Error)))
	}
	if a.ExitCode != nil && *a.ExitCode != 0 {
		notes = append(notes, fmt.Sprintf("exit code %d", *a.ExitCode))
	}
	if a.Signal != "" {
		notes = append(notes, "ended by signal "+Line(a.Signal))
	}
	for _, f := range a.Attachments {
		note := fmt.Sprintf("attached %s, %d bytes", Line(f.Name), f.Size)
		if f.Wrong != "" {
			note += ", which no model is shown: " + f.Wrong
		}
		notes = append(notes, note)
	}
	for _, v := range a.Variables {
		note := "supplies " + Line(v.Name)
		if v.Wrong != "" {
			note += ", which a run refuses: " + Line(v.Wrong)
		}
		notes = append(notes, note)
	}
	if a.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes of output were not kept", a.Dropped))
	}
	if len(notes) > 0 {
		Notice(stderr, strings.Join(notes, ", "))
	}
	if a.Output == "" {
		return stdout.Err()
	}
	if stdout.TTY {
		return Text(stdout, Clean(a.Output))
	}
	return Text(stdout, a.Output)
}

// Begun lists the files of a new tool, and what to read first.
func Begun(s *Screen, files []string) error {
	if len(files) == 0 {
		return nil
	}
	var b strings.Builder
	for _, f := range files {
		b.WriteString(Line(f) + "\n")
	}
	b.WriteString("next: " + Line(filepath.Join(filepath.Dir(files[0]), "README.md")) + " says how to build, call and test it")
	return Text(s, b.String())
}
