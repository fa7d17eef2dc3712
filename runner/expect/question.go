package expect

import (
	"context"
	"fmt"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expr"
)

// Question is what a person would be asked: whether a call may run, or what a running call
// wants to know.
type Question struct {
	// Agent that makes the call.
	Agent string
	Call  message.ToolCall
	// Rule that asks; "" for a question of a running call.
	Rule string
	// Message is the text of the question.
	Message string
}

// Condition selects questions.
type Condition struct{ program *expr.Program }

// questions is the set of the conditions over questions. Their variables are the same for
// all agents.
var questions = sync.OnceValue(func() *expr.Texts {
	return expr.NewTexts(func() (*expr.Env, error) {
		return expr.NewEnv(
			expr.Var{Name: "agent", Type: expr.String}, expr.Var{Name: "tool", Type: expr.String}, expr.Var{Name: "args", Type: expr.Dyn},
			expr.Var{Name: "rule", Type: expr.String}, expr.Var{Name: "message", Type: expr.String})
	})
})

// CompileQuestion compiles a condition over questions. Its errors are *expr.Error.
func CompileQuestion(when string) (*Condition, error) {
	p, err := questions().Bool(when)
	if err != nil {
		return nil, err
	}
	return &Condition{p}, nil
}

// Holds reports whether the condition selects a question.
func (c *Condition) Holds(ctx context.Context, q Question) (bool, error) {
	args, err := expr.Dyn.Decode(q.Call.Args)
	if err != nil {
		return false, fmt.Errorf("read the arguments: %w", err)
	}
	truth, err := c.program.EvalBool(ctx, expr.Input{Large: true, Vars: map[string]any{
		"agent": q.Agent, "tool": q.Call.Tool, "args": args, "rule": q.Rule, "message": Text(q.Message),
	}})
	return truth == expr.True, err
}
