package expr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Program is a compiled expression. It may be evaluated by many goroutines.
type Program struct {
	env  *Env
	cel  *cel.Env
	ast  *cel.Ast
	want *types.Type
	out  Type
	cost uint64

	plain, counted, partial planned
}

// planned is one way to run the program, planned when it is first needed.
type planned struct {
	once sync.Once
	prog cel.Program
	err  error
}

func (pl *planned) get(p *Program, opts ...cel.ProgramOption) (cel.Program, error) {
	pl.once.Do(func() { pl.prog, pl.err = p.cel.Program(p.ast, opts...) })
	return pl.prog, pl.err
}

// deadline of one evaluation that is counted; the count ends it long before. It
// is by the clock on the wall, and what an honest rule decides must not depend on
// what else the machine does.
const deadline = 2 * time.Second

// Truth is the value of a condition.
type Truth int

// The values of a condition. Unknown is neither true nor false: it depends on a
// fact that could not be established.
const (
	False Truth = iota
	True
	Unknown
)

// Input is what an evaluation reads.
type Input struct {
	// Vars by name. A value may be a func() any, called when it is first read; the map
	// then keeps its value, so a map with such values must be used by one goroutine.
	Vars map[string]any
	// Large: a string or a list is longer than the static bound assumed, so the cost of
	// the evaluation must be counted.
	Large bool
	// Unknown names facts that could not be established. They are not in the map; nil when
	// everything is known.
	Unknown *Unknowns
}

// Unknowns is a set of variables and fields whose value is not known.
type Unknowns struct{ patterns []*cel.AttributePatternType }

// NewUnknowns makes a set of paths; a path is a variable, or a variable and a
// field.
func NewUnknowns(paths ...[]string) *Unknowns {
	u := &Unknowns{}
	for _, path := range paths {
		p := cel.AttributePattern(path[0])
		for _, f := range path[1:] {
			p.QualString(f)
		}
		u.patterns = append(u.patterns, p)
	}
	return u
}

// Output returns the type of the value.
func (p *Program) Output() Type { return p.out }

// Cost returns the static bound.
func (p *Program) Cost() uint64 { return p.cost }

// Eval returns the value as a Go value: bool, string, int64, float64, []any,
// map[string]any, time.Time or nil.
func (p *Program) Eval(ctx context.Context, vars map[string]any) (any, error) {
	v, err := p.run(ctx, Input{Vars: vars, Large: true})
	if err != nil {
		return nil, err
	}
	return native(v)
}

// EvalString evaluates an expression of type string. Its value is bounded.
func (p *Program) EvalString(ctx context.Context, in Input) (string, error) {
	v, err := p.run(ctx, in)
	if err != nil {
		return "", err
	}
	s, ok := v.(types.String)
	if !ok {
		return "", fmt.Errorf("the value is %s, not string", v.Type().TypeName())
	}
	return string(s), nil
}

// EvalBool evaluates a condition. An error is never a truth value.
func (p *Program) EvalBool(ctx context.Context, in Input) (Truth, error) {
	v, err := p.run(ctx, in)
	if err != nil {
		return False, err
	}
	switch v := v.(type) {
	case types.Bool:
		if v {
			return True, nil
		}
		return False, nil
	case *types.Unknown:
		return Unknown, nil
	}
	return False, fmt.Errorf("the value is %s, not bool", v.Type().TypeName())
}

func (p *Program) run(ctx context.Context, in Input) (ref.Val, error) {
	switch {
	case in.Unknown != nil:
		prog, err := p.partial.get(p, append(tracked(), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost, cel.OptPartialEval))...)
		if err != nil {
			return nil, err
		}
		vars, err := cel.PartialVars(in.Vars, in.Unknown.patterns...)
		if err != nil {
			return nil, err
		}
		return bounded(ctx, prog, vars)
	case in.Large || p.cost > untracked:
		prog, err := p.counted.get(p, append(tracked(), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))...)
		if err != nil {
			return nil, err
		}
		return bounded(ctx, prog, in.Vars)
	default:
		prog, err := p.plain.get(p, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, err
		}
		v, _, err := prog.Eval(in.Vars)
		return v, err
	}
}

func tracked() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CostLimit(CostLimit), cel.InterruptCheckFrequency(100)}
}

func bounded(ctx context.Context, prog cel.Program, vars any) (ref.Val, error) {
	live, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	v, _, err := prog.ContextEval(live, vars)
	var cut interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cut) && cut.Cause == interpreter.CostLimitExceeded:
		return nil, fmt.Errorf("the expression costs more than %d steps", CostLimit)
	case err != nil && live.Err() != nil && ctx.Err() == nil:
		// Counting itself takes time in proportion to the square of a loop's length.
		return nil, fmt.Errorf("the expression costs more than %s", deadline)
	}
	return v, err
}

// Constant returns the value of a condition that has the same one for every
// input, for example 'false && x'.
func (p *Program) Constant() (value, constant bool) {
	if p.env.needsInput(p.ast.NativeRep().Expr()) {
		return false, false // nearly every condition, and to evaluate it costs a plan
	}
	return p.withoutInput()
}

// withoutInput evaluates a condition while no variable is known.
func (p *Program) withoutInput() (value, constant bool) {
	vars := make([][]string, 0, len(p.env.vars))
	for _, v := range p.env.vars {
		vars = append(vars, []string{v.Name})
	}
	v, err := p.run(context.Background(), Input{Vars: map[string]any{}, Unknown: NewUnknowns(vars...)})
	b, ok := v.(types.Bool)
	return bool(b), err == nil && ok
}

// Reads reports whether the expression reads a variable or a field of it, given as a path
// such as call, args.
func (p *Program) Reads(path ...string) bool { return reads(p.ast.NativeRep().Expr(), path) }

// Fields returns the fields of a path that the expression reads, has() included.
func (p *Program) Fields(path ...string) []string { return fields(p.ast.NativeRep().Expr(), path) }

// EvalRaw returns the value as it is, to be an input of another evaluation: it
// may be unknown, and it is not copied.
func (p *Program) EvalRaw(ctx context.Context, in Input) (any, error) { return p.run(ctx, in) }
