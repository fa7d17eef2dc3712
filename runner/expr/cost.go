package expr

import (
	"fmt"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
)

// What the static bound assumes of values whose schema sets no limit. An
// evaluation whose inputs are larger is counted while it runs (see Program).
const (
	assumedString = 4096
	assumedItems  = 64
	// untracked is the static bound up to which an evaluation within the
	// assumptions runs without counting; 10,000 is about 1 ms at worst.
	untracked = 10_000
)

// bound estimates the cost of the program and refuses what cannot be paid for.
func (p *Program) bound() error {
	est, err := p.cel.EstimateCost(p.ast, &sizes{p.env})
	if err != nil {
		return &Error{Line: 1, Col: 1, Message: "estimate the cost: " + err.Error()}
	}
	p.cost = est.Max
	if est.Max > CostLimit {
		return &Error{
			Line: 1, Col: 1, Message: fmt.Sprintf("the expression may cost %d steps, more than %d", est.Max, CostLimit),
			Suggestion: "nest fewer loops, or set maxItems and maxLength in the tool's schema",
		}
	}
	return nil
}

// sizes gives the estimator the lengths of values.
type sizes struct{ env *Env }

// EstimateSize returns the declared or assumed size of a value.
func (s *sizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	if t, ok := s.lookup(n.Path()); ok && t.max > 0 {
		return &checker.SizeEstimate{Max: t.max}
	}
	switch n.Type().Kind() {
	case types.StringKind, types.BytesKind, types.DynKind:
		return &checker.SizeEstimate{Max: assumedString}
	case types.ListKind, types.MapKind, types.StructKind:
		return &checker.SizeEstimate{Max: assumedItems}
	}
	return nil
}

// EstimateCallCost leaves every function to its own estimate.
func (s *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func (s *sizes) lookup(path []string) (Type, bool) {
	if len(path) == 0 {
		return Type{}, false
	}
	for _, v := range s.env.vars {
		if v.Name == path[0] {
			return follow(v.Type, path[1:])
		}
	}
	return Type{}, false
}

func follow(t Type, path []string) (Type, bool) {
	for _, step := range path {
		switch {
		case step == "@items" || step == "@values":
			if t.elem == nil {
				return Type{}, false
			}
			t = *t.elem
		case t.object != nil:
			f, ok := t.object.fields[step]
			if !ok {
				return Type{}, false
			}
			t = f.Type
		default:
			return Type{}, false
		}
	}
	return t, true
}
