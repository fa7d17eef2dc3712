package prompt

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a scan: how many different names are looked up, how many places ask for
// something, and how long each may be, in bytes.
const (
	maxNames   = 10_000
	maxPlaces  = 32
	maxMention = 4096
)

// Mention is a place in the text of an author that may ask for something: a name behind an
// @, or a command in !`…`.
type Mention struct {
	// Text is the place as it is written.
	Text string
	// Name is what the @ is before, without quotes; "" for a command.
	Name string
	// Command is the command line; "" for a name.
	Command string
}

// Span is a part of a text, in bytes: from its beginning to before its end.
type Span struct{ From, To int }

// Mentions are the places of a prompt, each once. Data are parts of it that its author has
// not written: nothing is looked for there.
func Mentions(text string, data ...Span) ([]Mention, error) {
	return mentions(text, data, func(s string) bool { return strings.Contains(s, open) }, func(command string) (string, error) {
		if len(References(command)) > 0 {
			return "", errors.New("an input is not put into a command")
		}
		return Fill(command, nil)
	})
}

// Mentions are the places of the text of the command, each once.
func (c *Command) Mentions() ([]Mention, error) {
	return mentions(c.body, nil, filled, func(command string) (string, error) {
		return (&Command{body: command}).each(func(p place) (string, error) {
			return "", fmt.Errorf("%s is not put into a command; $%s leaves it to the shell", p.text, p.text)
		})
	})
}

// filled reports whether something is put into a text of a command.
func filled(text string) bool {
	for i := range len(text) {
		if text[i] != '$' {
			continue
		}
		if _, ok := placeAt(text[i:]); ok {
			return true
		}
	}
	return false
}

// mentions scans a text once. What is put into it later is data and cannot be part of a
// place: filled reports whether a name has room for data, and plain returns a command as the
// shell is given it.
func mentions(text string, data []Span, filled func(string) bool, plain func(string) (string, error)) (all []Mention, err error) {
	seen := map[string]bool{}
	names := 0
	for at := 0; at < len(text); {
		i := strings.IndexAny(text[at:], "@!")
		if i < 0 {
			return all, nil
		}
		at += i
		if !begins(text[:at]) {
			at++
			continue
		}
		m, size := mentionAt(text[at:])
		if size == 0 || within(data, at, at+size) {
			at++
			continue
		}
		if at += size; m.Text == "" || seen[m.Text] || m.Name != "" && filled(m.Name) {
			continue
		}
		seen[m.Text] = true
		if m.Command == "" {
			if names++; names > maxNames {
				return nil, fmt.Errorf("it has more than %d different words that begin with @", maxNames)
			}
		} else if m.Command, err = plain(m.Command); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Text, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// begins reports whether a place can come behind a text: the @ of an address is none.
func begins(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune(`([{<"',;`, r)
}

func within(data []Span, from, to int) bool {
	return slices.ContainsFunc(data, func(s Span) bool { return from < s.To && to > s.From })
}

// mentionAt reads a place at the beginning of a text; its size is 0 where there is none. A
// place is on one line. A text that is none has a size, and no Text, where it has to be
// skipped.
func mentionAt(text string) (m Mention, size int) {
	if rest, ok := strings.CutPrefix(text, "!`"); ok {
		end := strings.IndexAny(rest[:min(len(rest), maxMention)], "`\n")
		if end < 0 || rest[end] != '`' || strings.TrimSpace(rest[:end]) == "" {
			return m, 0
		}
		size = len("!``") + end
		return Mention{Text: text[:size], Command: strings.TrimSpace(rest[:end])}, size
	}
	rest, ok := strings.CutPrefix(text, "@")
	if !ok {
		return m, 0
	}
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		end := strings.IndexAny(quoted[:min(len(quoted), maxMention)], "\"\n")
		if end <= 0 || quoted[end] != '"' {
			return m, 0
		}
		size = len(`@""`) + end
		return Mention{Text: text[:size], Name: quoted[:end]}, size
	}
	if rest == "" || rest[0] == '@' {
		return m, 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`\"'<>,;", r) })
	switch {
	case end < 0:
		end = len(rest)
	case end == 0:
		return m, 0
	}
	if end > maxMention { // a word that is no name is read once
		return m, end
	}
	return Mention{Text: text[:1+end], Name: rest[:end]}, 1 + end
}

// Target is what a mention leads to: lines of a file, a whole file, a folder, an agent or a
// command.
type Target struct {
	Mention
	Path string
	// First and Last line, counted from 1; 0 is the whole of it.
	First, Last int
	Agent       string
}

// Targets are those of the mentions that lead somewhere; the others are text. A path that
// exists is preferred to an agent of that name.
func Targets(all []Mention, exists func(path string) bool, agents []string) (found []Target, err error) {
	for _, m := range all {
		t, ok, err := m.target(exists, agents)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Text, err)
		}
		if !ok || slices.ContainsFunc(found, t.same) {
			continue
		}
		if found = append(found, t); len(found) > maxPlaces {
			return nil, fmt.Errorf("it asks for more than %d files, agents and commands", maxPlaces)
		}
	}
	return found, nil
}

func (t Target) same(u Target) bool {
	t.Mention.Text, t.Name = u.Mention.Text, u.Name
	return t == u
}

// target finds what a mention leads to. Punctuation at its end may be that of the sentence.
func (m Mention) target(exists func(string) bool, agents []string) (t Target, ok bool, err error) {
	if m.Command != "" {
		return Target{Mention: m}, true, nil
	}
	names := []string{m.Name}
	if m.Text == "@"+m.Name {
		if short := strings.TrimRight(m.Name, ".:!?)]}*_"); short != m.Name && short != "" {
			names = append(names, short)
		}
	}
	at := func(name string) Target {
		t := Target{Mention: m}
		t.Name = name
		if name != m.Name {
			t.Text = "@" + name
		}
		return t
	}
	for _, name := range names {
		t := at(name)
		if exists(name) {
			t.Path = filepath.Clean(name)
			return t, true, nil
		}
		path, first, last, ok := lines(name)
		if !ok || !exists(path) {
			continue
		}
		if first == 0 || last < first {
			return t, false, errors.New("lines are #L10 or #L10-L20, and count from 1")
		}
		t.Path, t.First, t.Last = filepath.Clean(path), first, last
		return t, true, nil
	}
	for _, name := range names {
		if slices.Contains(agents, name) {
			t := at(name)
			t.Agent = name
			return t, true, nil
		}
	}
	return t, false, nil
}

// lines parts a name into a path and the lines of its file: path#L10, or path#L10-L20.
func lines(name string) (path string, first, last int, ok bool) {
	i := strings.LastIndex(name, "#L")
	if i <= 0 {
		return "", 0, 0, false
	}
	from, to, several := strings.Cut(name[i+len("#L"):], "-")
	if first, ok = lineNumber(from); !several || !ok {
		return name[:i], first, first, ok
	}
	last, ok = lineNumber(strings.TrimPrefix(to, "L"))
	return name[:i], first, last, ok
}

func lineNumber(text string) (n int, ok bool) {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// EscapeData writes the parts of a prompt that are data so that Fill returns them as they are.
func EscapeData(text string, data ...Span) string {
	var b strings.Builder
	at := 0
	for _, s := range data {
		b.WriteString(text[at:s.From] + Escape(text[s.From:s.To]))
		at = s.To
	}
	return b.String() + text[at:]
}
