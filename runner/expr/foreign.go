package expr

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
)

// Limits of the regular expressions of foreign sources. What a pattern takes when it is
// compiled is no part of the cost of an evaluation, and 20 bytes can take 8 MB.
const (
	// patternBytes bounds the text of one.
	patternBytes = 1024
	// patternSize bounds what one compiles to, in steps and ends of character ranges: \pL
	// has 1,300 of them.
	patternSize = 10_000
	// patternsSize bounds all of them together.
	patternsSize = 50_000
)

// Patterns is what the regular expressions of foreign sources may still take together.
type Patterns struct{ left int }

// NewPatterns returns what the sources of one origin may take.
func NewPatterns() *Patterns { return &Patterns{patternsSize} }

// Take counts the patterns of an expression before it is compiled. Only constant ones can
// be counted, so any other is an error, as is one that is too large.
func (p *Patterns) Take(s *Source) error { return p.take(s, s.tree()) }

func (p *Patterns) take(s *Source, x ast.Expr) error {
	if x.Kind() == ast.CallKind {
		// matches is the only function that takes a pattern.
		if c := x.AsCall(); strings.TrimPrefix(c.FunctionName(), ".") == overloads.Matches && len(c.Args()) > 0 {
			if err := p.pattern(c.Args()[len(c.Args())-1]); err != nil {
				at := s.parsed.NativeRep().SourceInfo().GetStartLocation(x.ID())
				err.Line, err.Col = at.Line(), at.Column()+1
				return err
			}
		}
	}
	for _, c := range children(x) {
		if err := p.take(s, c); err != nil {
			return err
		}
	}
	return nil
}

func (p *Patterns) pattern(x ast.Expr) *Error {
	text, constant := literal(x)
	if !constant {
		return &Error{Message: "the pattern of matches() is computed, and only a constant one is accepted here", Suggestion: "write it as a text"}
	}
	if len(text) > patternBytes {
		return &Error{Message: fmt.Sprintf("the pattern has %d bytes, at most %d are accepted here", len(text), patternBytes)}
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return &Error{Message: "read the pattern: " + err.Error()}
	}
	n := size(re)
	if n > patternSize {
		return &Error{
			Message:    fmt.Sprintf("the pattern compiles to %d steps and character ranges, at most %d are accepted here", n, patternSize),
			Suggestion: "repeat less of it, or smaller classes: [A-Za-z] in place of \\pL",
		}
	}
	if p.left -= n; p.left < 0 {
		return &Error{Message: fmt.Sprintf("the patterns up to this one compile to more than %d steps and character ranges together", patternsSize), Suggestion: "write fewer or smaller ones"}
	}
	return nil
}

// size is at least what a pattern compiles to. Nothing is compiled for it: a repetition is
// not written out.
func size(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}
