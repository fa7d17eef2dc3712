package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// Advice is how to continue after an error; empty fields are left out.
type Advice struct {
	// Meant is the command line that was probably meant.
	Meant string
	// Hint is a sentence.
	Hint string
	// See is a command that shows more.
	See string
}

// Error shows an error that ended a command. Each line of it is cleaned: names
// and texts in it may come from a manifest or a server.
func Error(s *Screen, err error, a Advice) {
	lines := strings.Split(strings.TrimRight(Clean(err.Error()), "\n"), "\n")
	var b strings.Builder
	b.WriteString(s.paint(red, "error:") + " " + strings.Join(lines, "\n  ") + "\n")
	if a.Meant != "" {
		b.WriteString("did you mean: " + s.paint(cyan, Line(a.Meant)) + "\n")
	}
	if a.Hint != "" {
		b.WriteString(s.paint(cyan, "hint:") + " " + Line(a.Hint) + "\n")
	}
	if a.See != "" {
		b.WriteString("see: " + Line(a.See) + "\n")
	}
	s.print(b.String())
}

// Notice shows a line that is neither result nor error.
func Notice(s *Screen, text string) { s.print(Line(text) + "\n") }

// Text writes a text of ours that ends with a line break.
func Text(s *Screen, text string) error {
	s.print(endLine(text))
	return s.Err()
}

// Table writes rows in columns.
func Table(s *Screen, rows [][]string) error { return Text(s, table(rows)) }

// ExitCodes writes the table of exit codes and the reasons behind them.
func ExitCodes(s *Screen, all []reason.Info) error {
	var b strings.Builder
	b.WriteString("Exit codes of \"agentctl run\", \"attach\", \"resume\" and \"replay\". The reason is in\n" +
		"the footer, in the result of -o json and in the journal.\n\n")
	rows := [][]string{{s.paint(bold, "CODE"), s.paint(bold, "REASON"), s.paint(bold, "MEANING")}}
	for code := 0; code <= reason.ExitHost; code++ {
		if code == reason.ExitUsage {
			rows = append(rows, []string{"2", "-", "The command line or a manifest is wrong; no run began."})
		}
		for _, i := range all {
			if i.ExitCode == code {
				rows = append(rows, []string{fmt.Sprint(code), string(i.Reason), i.Meaning})
			}
		}
	}
	rows = append(rows,
		[]string{"124", "-", "The time to wait for something has passed."},
		[]string{"130", string(reason.Cancelled), "Ctrl-C ended the run."},
		[]string{"141", "-", "The reader of the output has gone away, as in | head."},
		[]string{"143", string(reason.Cancelled), "A TERM signal or a closed terminal ended the run."})
	b.WriteString(table(rows))
	b.WriteString("\nOther commands exit with 0, with 1 when they fail, and with 2 when the command\n" +
		"line or a manifest is wrong.\n\nReasons of objects, as their conditions show them:\n\n")
	rows = nil
	for _, i := range all {
		if i.ExitCode < 0 {
			rows = append(rows, []string{"  " + string(i.Reason), i.Meaning})
		}
	}
	b.WriteString(table(rows))
	return Text(s, b.String())
}

// Version is what the program knows about itself.
type Version struct {
	Version string `json:"version"`
	// Commit of the source; "" when it was not built from a repository.
	Commit string `json:"commit"`
	// Modified says that the source differed from the commit.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// WriteText writes the version as a line.
func (v Version) WriteText(s *Screen) error {
	commit := ""
	if v.Commit != "" {
		commit = "commit " + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			commit += " modified"
		}
		commit += ", "
	}
	return Text(s, fmt.Sprintf("agentctl %s (%s%s, %s/%s)", v.Version, commit, v.Go, v.OS, v.Arch))
}

// WriteJSON writes the version as an object.
func (v Version) WriteJSON(s *Screen) error { return writeJSON(s, v) }

// Warning shows something that did not stop a command.
func Warning(s *Screen, text string) { s.print(s.paint(yellow, "warning:") + " " + Line(text) + "\n") }
