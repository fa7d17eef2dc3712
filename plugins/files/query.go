package files

import (
	"bytes"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// query is what is searched for.
type query struct {
	line *regexp.Regexp
	// prog is the same expression for an automaton.
	prog *syntax.Prog
	// needles are texts of which each matching line has one.
	needles needles
	include string
	// hidden files are left out.
	hidden []string
}

func newQuery(in grepIn) (*query, error) {
	if in.Pattern == "" {
		return nil, sdk.Errorf("pattern is empty")
	}
	if len(in.Pattern) > maxPattern {
		return nil, sdk.Errorf("pattern is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, sdk.Errorf("pattern is no valid regular expression (RE2: no lookaround, no backreferences): %w", err)
	}
	q := &query{line: re, include: in.Include}
	if in.Include != "" {
		if err := checkPattern("include", in.Include); err != nil {
			return nil, err
		}
	}
	tree, err := syntax.Parse(in.Pattern, syntax.Perl)
	if err != nil {
		return nil, sdk.Errorf("parse pattern: %w", err)
	}
	q.needles = needlesOf(tree)
	if q.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, sdk.Errorf("compile pattern: %w", err)
	}
	return q, nil
}

// wants reports whether a file is to be searched; a pattern without a slash applies to the
// file's name.
func (q *query) wants(base, rel string) bool {
	switch {
	case q.include == "":
		return true
	case strings.Contains(q.include, "/"):
		return matches(strings.TrimPrefix(q.include, "./"), relative(base, rel))
	}
	return matches(q.include, path.Base(rel))
}

// scanner returns what one goroutine searches files with.
func (q *query) scanner() *scanner {
	return &scanner{line: q.line, lines: newAutomaton(q.prog), needles: newFinder(q.needles)}
}

// hit is a line that matches.
type hit struct {
	line int
	text string
}

// scanner searches one text after the other. The result is that of asking each line by
// itself, without asking most of them.
type scanner struct {
	line    *regexp.Regexp
	lines   *automaton
	needles *finder // nil: there are none worth looking for
	begins  []int
	buffer  []byte
	// plain holds a text without the returns before its line ends.
	plain []byte
}

// hits returns the matching lines of a text, at most so many.
func (s *scanner) hits(text []byte, most int) []hit {
	if bytes.IndexByte(text, '\r') >= 0 {
		s.plain = withoutReturns(s.plain[:0], text)
		text = s.plain
	}
	var ok bool
	if s.begins, ok = s.matching(text, most); !ok {
		return s.byLine(text, most)
	}
	var all []hit
	line, at := 1, 0
	for _, begin := range s.begins {
		line += bytes.Count(text[at:begin], []byte{'\n'})
		at = begin
		one := bytes.TrimSuffix(text[begin:begin+lineLength(text[begin:])], []byte{'\n'})
		all = append(all, hit{line, s.shown(one)})
	}
	return all
}

// withoutReturns appends text to dst, each line without one return at its end, and the
// last one with a line end.
func withoutReturns(dst, text []byte) []byte {
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\r')
		if i < 0 {
			break
		}
		dst = append(dst, text[:i]...)
		if rest := text[i+1:]; len(rest) > 0 && rest[0] != '\n' {
			dst = append(dst, '\r')
		}
		text = text[i+1:]
	}
	dst = append(dst, text...)
	if !bytes.HasSuffix(text, []byte{'\n'}) {
		dst = append(dst, '\n')
	}
	return dst
}

// patience is how many bytes each line may take that has a needle and does not match;
// with more such lines the automaton alone is faster.
const patience = 200

// matching returns where the matching lines of text begin; false if that is to be found
// otherwise.
func (s *scanner) matching(text []byte, most int) (begins []int, ok bool) {
	begins = s.begins[:0]
	if s.needles == nil {
		return s.lines.matching(text, most, begins)
	}
	s.needles.open(text)
	at, useless := 0, 0
	for len(begins) < most {
		i := s.needles.find(at)
		if i < 0 {
			break
		}
		begin := bytes.LastIndexByte(text[:i], '\n') + 1
		end := begin + lineLength(text[begin:])
		match, ok := s.lines.matches(text[begin:end])
		if !ok {
			return begins, false
		}
		if at = end; match {
			begins = append(begins, begin)
			continue
		}
		if useless++; useless*patience > at+patience*100 {
			n := len(begins)
			begins, ok = s.lines.matching(text[at:], most, begins)
			for i := range begins[n:] {
				begins[n+i] += at
			}
			return begins, ok
		}
	}
	return begins, true
}

// byLine asks each line in turn.
func (s *scanner) byLine(text []byte, most int) []hit {
	var all []hit
	line := 0
	for len(text) > 0 && len(all) < most {
		line++
		one, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		if s.line.Match(one) {
			all = append(all, hit{line, s.shown(one)})
		}
	}
	return all
}

// maxShown is how many characters of a matching line are shown.
const maxShown = 300

// shown is a matching line as it is shown.
func (s *scanner) shown(line []byte) string {
	if len(line) <= maxShown {
		return readable(line)
	}
	at := 0
	if m := s.line.FindIndex(line); m != nil {
		at = m[0]
	}
	return around(line, at)
}

// around is the part of a long line around a match.
func around(line []byte, match int) string {
	from := max(0, match-maxShown/3)
	from -= from % 4 // keep the cut still when the match moves a little
	for from > 0 && line[from]&0xc0 == 0x80 {
		from--
	}
	text, cut := shorten(readable(line[from:min(len(line), from+maxShown*4)]), maxShown)
	if from > 0 {
		text = "…" + text
	}
	if cut > 0 || from+maxShown*4 < len(line) {
		text += "…"
	}
	return text
}
