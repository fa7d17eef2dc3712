// Package patch reads the patch format that models write: which files a patch adds, updates, deletes and moves.
//
// Whoever judges a patch and whoever applies it must read it alike, so both use this
// package:
//
//	*** Begin Patch
//	*** Add File: notes/new.txt
//	+first line
//	*** Update File: main.go
//	*** Move to: cmd/main.go
//	@@ func main() {
//	 	a()
//	-	b()
//	+	c()
//	*** Delete File: old.txt
//	*** End Patch
package patch

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds of a patch.
const (
	MaxBytes = 1 << 20
	MaxFiles = 100
)

// Kind is what a change does to its file.
type Kind string

// The kinds of a change. A move is an Update with a target.
const (
	Add    Kind = "add"
	Update Kind = "update"
	Delete Kind = "delete"
)

// Change is what a patch does to one file.
type Change struct {
	Kind Kind
	// Path as the patch writes it, MoveTo the new one; "" is no move.
	Path, MoveTo string
	// Content of a file that is added.
	Content string
	// Hunks of an update, in the order of the file.
	Hunks []Hunk
}

// Hunk is one place of an update.
type Hunk struct {
	// At are lines that come before the place, each after the one before it.
	At []string
	// Lines of the place: what is there, and what will be.
	Lines []Line
	// AtEnd: the place is the end of the file.
	AtEnd bool
	// Number of the line of the patch where the hunk begins.
	Number int
}

// Line is a line of a hunk.
type Line struct {
	// Op is ' ' for a line that stays, '-' for one that goes, '+' for one that comes.
	Op   byte
	Text string
}

const (
	begin    = "*** Begin Patch"
	end      = "*** End Patch"
	addFile  = "*** Add File: "
	update   = "*** Update File: "
	deleted  = "*** Delete File: "
	moveTo   = "*** Move to: "
	endOf    = "*** End of File"
	sections = "*** "
)

// Parse reads a patch, all of it or nothing. Its errors name the line and help the
// writer correct it.
func Parse(text string) ([]Change, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the patch has %d bytes, at most %d", len(text), MaxBytes)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, errors.New("the patch is not UTF-8 text")
	}
	p := &parser{lines: strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"), "\n")}
	if strings.TrimSpace(p.lines[0]) != begin {
		return nil, p.wrong("a patch begins with %q", begin)
	}
	if last := len(p.lines) - 1; last == 0 || strings.TrimSpace(p.lines[last]) != end {
		p.at = last
		return nil, p.wrong("a patch ends with %q", end)
	}
	p.lines = p.lines[:len(p.lines)-1]
	var changes []Change
	for p.at = 1; p.at < len(p.lines); {
		if strings.TrimSpace(p.lines[p.at]) == "" {
			p.at++
			continue
		}
		c, err := p.change()
		if err != nil {
			return nil, err
		}
		if changes = append(changes, c); len(changes) > MaxFiles {
			return nil, fmt.Errorf("the patch changes more than %d files", MaxFiles)
		}
	}
	if len(changes) == 0 {
		return nil, errors.New("the patch changes nothing")
	}
	if err := unique(changes); err != nil {
		return nil, err
	}
	return changes, nil
}

// unique refuses a patch that names a file twice: what is there would depend on the order.
func unique(changes []Change) error {
	seen := map[string]bool{}
	for _, c := range changes {
		for _, name := range []string{c.Path, c.MoveTo} {
			if name == "" {
				continue
			}
			if clean := path.Clean(name); seen[clean] {
				return fmt.Errorf("the patch names %s twice: write one section with all that happens to it", name)
			}
			seen[path.Clean(name)] = true
		}
	}
	return nil
}

type parser struct {
	lines []string
	at    int
}

func (p *parser) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", p.at+1, fmt.Sprintf(format, args...))
}

// change reads a section, from its header to the next one.
func (p *parser) change() (c Change, err error) {
	line := p.lines[p.at]
	switch {
	case strings.HasPrefix(line, addFile):
		c.Kind, c.Path = Add, strings.TrimSpace(line[len(addFile):])
	case strings.HasPrefix(line, update):
		c.Kind, c.Path = Update, strings.TrimSpace(line[len(update):])
	case strings.HasPrefix(line, deleted):
		c.Kind, c.Path = Delete, strings.TrimSpace(line[len(deleted):])
	default:
		return c, p.wrong("%.60q begins no section: a section begins with %q, %q or %q and a path", line, addFile, update, deleted)
	}
	if c.Path == "" {
		return c, p.wrong("the section names no file")
	}
	p.at++
	switch c.Kind {
	case Add:
		err = p.added(&c)
	case Update:
		err = p.updated(&c)
	case Delete: // its line is the whole section
	}
	return c, err
}

func (p *parser) section() bool { return strings.HasPrefix(p.lines[p.at], sections) }

func (p *parser) added(c *Change) error {
	var b strings.Builder
	for ; p.at < len(p.lines) && !p.section(); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			return p.wrong("each line of a file that is added begins with +")
		}
		b.WriteString(text + "\n")
	}
	c.Content = b.String()
	return nil
}

func (p *parser) updated(c *Change) error {
	if p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], moveTo) {
		if c.MoveTo = strings.TrimSpace(p.lines[p.at][len(moveTo):]); c.MoveTo == "" {
			return p.wrong("the section names no file to move to")
		}
		p.at++
	}
	for p.at < len(p.lines) && !p.section() {
		h, err := p.hunk()
		if err != nil {
			return err
		}
		c.Hunks = append(c.Hunks, h)
	}
	if len(c.Hunks) == 0 && c.MoveTo == "" {
		return p.wrong("the update of %s changes nothing", c.Path)
	}
	return nil
}

// hunk reads the lines that begin with @@, and those of the place after them. The first
// hunk of a section may have none of the former.
func (p *parser) hunk() (h Hunk, err error) {
	h.Number = p.at + 1
	for p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@") {
		if text := header(p.lines[p.at]); text != "" {
			h.At = append(h.At, text)
		}
		p.at++
	}
	changes := false
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if line == endOf {
			h.AtEnd = true
			p.at++
			break
		}
		if p.section() || strings.HasPrefix(line, "@@") {
			break
		}
		if line == "" { // editors take the blank away
			line = " "
		}
		op := line[0]
		if op != ' ' && op != '+' && op != '-' {
			return h, p.wrong("each line of a hunk begins with a blank, + or -: %.60q", line)
		}
		changes = changes || op != ' '
		h.Lines = append(h.Lines, Line{op, line[1:]})
	}
	if !changes {
		p.at = h.Number - 1
		return h, p.wrong("the hunk changes nothing: it has no line with + or -")
	}
	return h, nil
}

// header is the text of an @@ line. The line numbers of a unified diff are left out.
func header(line string) string {
	text := strings.TrimPrefix(line, "@@")
	if rest, ok := strings.CutPrefix(text, " -"); ok {
		if numbers, after, ok := strings.Cut(rest, "@@"); ok && strings.Trim(numbers, "0123456789,+ ") == "" {
			text = after
		}
	}
	return strings.TrimSpace(text)
}

// Old is what the hunk finds in the file, New what it puts there.
func (h *Hunk) Old() string { return h.without('+') }

// New is what is there afterwards.
func (h *Hunk) New() string { return h.without('-') }

func (h *Hunk) without(op byte) string {
	var b strings.Builder
	for _, l := range h.Lines {
		if l.Op != op {
			b.WriteString(l.Text + "\n")
		}
	}
	return b.String()
}
