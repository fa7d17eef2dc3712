package expr

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// Source is an expression that was parsed but not checked: what it reads does not depend
// on types.
//
// Parsing costs more than checking, so an expression that is compiled for many
// environments is parsed once. It must be used by one goroutine: a check resolves names
// inside the tree, each time to the same.
type Source struct{ parsed *cel.Ast }

// Parse reads an expression without checking its types. It needs no Env: all of
// them have one grammar.
func Parse(src string) (*Source, error) {
	c, err := base()
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment: %w", err)
	}
	parsed, iss := c.Parse(src)
	if iss.Err() != nil {
		return nil, (&Env{}).problem(nil, iss)
	}
	return &Source{parsed}, nil
}

// Bool compiles a condition.
func (s *Source) Bool(e *Env) (*Program, error) {
	return e.compile(s, types.BoolType, "a condition")
}

// Text compiles an expression of type string.
func (s *Source) Text(e *Env) (*Program, error) {
	return e.compile(s, types.StringType, "a text")
}

func (s *Source) tree() ast.Expr { return s.parsed.NativeRep().Expr() }

// Reads reports whether the expression reads a variable or a field of it.
func (s *Source) Reads(path ...string) bool { return reads(s.tree(), path) }

// Fields returns the fields of a path that the expression reads, has() included.
func (s *Source) Fields(path ...string) []string { return fields(s.tree(), path) }

// ReadsWhole reports whether the expression reads a path as a whole, or something it is a
// part of, and not only fields of it.
func (s *Source) ReadsWhole(path ...string) bool {
	whole := false
	visit(s.tree(), func(p []string) {
		whole = whole || len(p) <= len(path) && slices.Equal(p, path[:len(p)])
	})
	return whole
}

// Guarded reports whether every read of path.field is guarded by has(path.field).
func (s *Source) Guarded(field string, path ...string) bool {
	return guarded(s.tree(), append(append([]string(nil), path...), field), false)
}
