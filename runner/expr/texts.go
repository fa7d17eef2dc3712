package expr

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Texts holds the expressions of texts that read the same variables. They are compiled when
// they are first needed, each once. It may be used by many goroutines.
type Texts struct {
	env func() (*Env, error)

	mu    sync.Mutex
	conds map[string]*Program
	exprs map[string]*Program
}

// NewTexts returns a set whose variables env declares; it is called once, when the first
// expression is compiled.
func NewTexts(env func() (*Env, error)) *Texts {
	return &Texts{env: sync.OnceValues(env), conds: map[string]*Program{}, exprs: map[string]*Program{}}
}

// Bool compiles a condition, once.
func (s *Texts) Bool(src string) (*Program, error) {
	return s.compile(s.conds, src, (*Env).Bool)
}

// Any compiles an expression of any type, once.
func (s *Texts) Any(src string) (*Program, error) {
	return s.compile(s.exprs, src, (*Env).Any)
}

func (s *Texts) compile(known map[string]*Program, src string, how func(*Env, string) (*Program, error)) (*Program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if prog, ok := known[src]; ok {
		return prog, nil
	}
	env, err := s.env()
	if err != nil {
		return nil, err
	}
	prog, err := how(env, src)
	if err != nil {
		return nil, err
	}
	known[src] = prog
	return prog, nil
}

// Inspect compiles the expressions of a text. It calls bad with each mistake, and good,
// which may be nil, with each expression that has none.
func (s *Texts) Inspect(text string, bad func(error), good func(*Program)) {
	segments, err := parse(text)
	if err != nil {
		bad(err)
	}
	for _, part := range segments {
		if !part.expr {
			continue
		}
		prog, err := s.Any(part.text)
		switch {
		case err != nil:
			bad(fmt.Errorf("${%s}: %w", part.text, err))
		case good != nil:
			good(prog)
		}
	}
}

// Text replaces the expressions of a text; path is where it is written, for errors.
func (s *Texts) Text(ctx context.Context, path, text string, vars map[string]any) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	segments, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var b strings.Builder
	for _, part := range segments {
		if !part.expr {
			b.WriteString(part.text)
			continue
		}
		v, err := s.eval(ctx, part.text, vars)
		if err != nil {
			return "", fmt.Errorf("%s: ${%s}: %w", path, part.text, err)
		}
		word, err := textOf(v)
		if err != nil {
			return "", fmt.Errorf("%s: ${%s}: %w", path, part.text, err)
		}
		if b.Len()+len(word) > MaxText {
			return "", fmt.Errorf("%s: ${%s}: %w", path, part.text, errTooLong)
		}
		b.WriteString(word)
	}
	return b.String(), nil
}

// Value is Text, except that a text which is one expression and nothing else has the value
// of that expression.
func (s *Texts) Value(ctx context.Context, path, text string, vars map[string]any) (any, error) {
	segments, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(segments) != 1 || !segments[0].expr {
		return s.Text(ctx, path, text, vars)
	}
	v, err := s.eval(ctx, segments[0].text, vars)
	if err != nil {
		return nil, fmt.Errorf("%s: ${%s}: %w", path, segments[0].text, err)
	}
	return plain(v), nil
}

func (s *Texts) eval(ctx context.Context, src string, vars map[string]any) (any, error) {
	prog, err := s.Any(src)
	if err != nil {
		return nil, err
	}
	v, err := prog.Eval(ctx, vars)
	if err == nil && Size(v, MaxText) > MaxText {
		err = errTooLong
	}
	return v, err
}
