package display

import (
	"bytes"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/safetext"
)

// Change is what a run changed.
type Change struct {
	Run   string
	Files []event.FileChange
	// Diff is the unified diff as git writes it.
	Diff []byte
}

// WriteDiff writes the diff. A program gets it byte for byte, so that it is a
// patch that git apply takes. A person, on a terminal or where colour is asked
// for, sees what a terminal would hide or obey.
func (c Change) WriteDiff(s *Screen) error {
	if !s.TTY && !s.Color {
		_, err := s.Write(c.Diff)
		return err
	}
	return WriteDiff(s, string(c.Diff))
}

// WriteDiff writes a unified diff for a person.
func WriteDiff(s *Screen, text string) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = diffLine(line)
		b.WriteString(s.paint(diffStyle(line), line) + "\n")
	}
	s.print(b.String())
	return s.Err()
}

// diffLine is a line of a diff without its line feed. A carriage return before
// it is named, too: it may be all that a change is about.
func diffLine(line string) string {
	return safetext.Visible(strings.TrimSuffix(line, "\n"), safetext.Tabs|safetext.Writing)
}

func diffStyle(line string) style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return bold
	case strings.HasPrefix(line, "@@"):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return ""
}

// changeJSON is the object of "diff -o json".
type changeJSON struct {
	Run   string             `json:"run"`
	Files []event.FileChange `json:"files"`
	Diff  string             `json:"diff"`
}

// WriteJSON writes the change as an object.
func (c Change) WriteJSON(s *Screen) error { return writeJSON(s, c.Object()) }

// Object is the change for programs.
func (c Change) Object() any {
	return changeJSON{c.Run, append([]event.FileChange{}, c.Files...), string(c.Diff)}
}

// WriteStat writes each file with the lines added and removed.
func (c Change) WriteStat(s *Screen) error {
	counts := countLines(c.Diff)
	var rows [][]string
	for _, f := range c.Files {
		letter, st := changeLetter(f.Change)
		row := []string{s.paint(st, letter) + " " + Line(f.Path)}
		if n, ok := counts[f.Path]; ok {
			row = append(row, s.paint(green, "+"+strconv.Itoa(n.added))+" "+s.paint(red, "-"+strconv.Itoa(n.removed)))
		}
		rows = append(rows, row)
	}
	s.print(table(rows))
	return s.Err()
}

type lineCount struct{ added, removed int }

// countLines counts by hunks: a line of a file may itself look like a header.
func countLines(diff []byte) map[string]lineCount {
	counts := map[string]lineCount{}
	var path string
	var before, after int // lines of the hunk still to come
	for raw := range bytes.Lines(diff) {
		line := strings.TrimRight(string(raw), "\r\n")
		if before > 0 || after > 0 {
			n := counts[path]
			switch {
			case strings.HasPrefix(line, "+"):
				n.added++
				after--
			case strings.HasPrefix(line, "-"):
				n.removed++
				before--
			case strings.HasPrefix(line, `\`):
			default:
				before--
				after--
			}
			counts[path] = n
			continue
		}
		if name, ok := headerName(line); ok {
			path = name
		} else if strings.HasPrefix(line, "@@ ") {
			before, after = hunkSize(line)
		}
	}
	return counts
}

// headerName reads the path of a "--- a/x" or "+++ b/x" line.
func headerName(line string) (string, bool) {
	for _, prefix := range []string{"--- ", "+++ "} {
		name, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "\t")
		if unquoted, err := strconv.Unquote(name); err == nil {
			name = unquoted
		}
		if name == "/dev/null" {
			return "", false
		}
		if rest, ok := strings.CutPrefix(name, "a/"); ok {
			return rest, true
		}
		return strings.TrimPrefix(name, "b/"), true
	}
	return "", false
}

// hunkSize reads the numbers of lines from "@@ -1,2 +3,4 @@".
func hunkSize(line string) (before, after int) {
	size := func(field string) int {
		_, n, ok := strings.Cut(field, ",")
		if !ok {
			return 1
		}
		v, _ := strconv.Atoi(n) // without a number it is line 0
		return v
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0
	}
	return size(fields[1]), size(fields[2])
}

// Applied is a change that was written to its folder.
type Applied struct {
	Run string `json:"run"`
	// Source is the folder.
	Source string             `json:"source"`
	Files  []event.FileChange `json:"files"`
	// Already says that nothing had to be done.
	Already bool `json:"already"`
}

// WriteText lists the files.
func (a Applied) WriteText(s *Screen) error {
	if len(a.Files) == 0 {
		return Text(s, "run/"+Line(a.Run)+" changed nothing")
	}
	if a.Already {
		return Text(s, "already applied: "+Line(a.Source)+" has the change of run/"+Line(a.Run))
	}
	return Text(s, "applied "+plural(int64(len(a.Files)), "changed file")+" to "+Line(a.Source)+"\n"+fileList(s, a.Files))
}

// WriteJSON writes the list as an object.
func (a Applied) WriteJSON(s *Screen) error {
	a.Files = append([]event.FileChange{}, a.Files...)
	return writeJSON(s, a)
}
