package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/model"
)

// maxArgs bounds the arguments of one call, in bytes.
const maxArgs = expr.MaxText

// Options are what a plan runs with. Plan is required.
type Options struct {
	// Skill is the name of the plan's skill, for messages.
	Skill string
	Plan  *v1alpha1.SkillPlan
	// Inputs of the run.
	Inputs map[string]json.RawMessage
	// MaxSteps bounds the steps that make calls; 0: the plan does.
	MaxSteps int
	// As is what the run records in place of a model.
	As message.ModelRef
}

// Conversation is a model.Conversation whose answers are the calls of a plan's steps.
//
// Which step is next, and what it calls, follows from the inputs and from the results that
// were appended, and from nothing else. So a resume that appends the recorded messages is
// where the run was, and no step whose results are recorded is repeated.
type Conversation struct {
	*program
	Options
	inputs  map[string]any
	results map[string]any

	// next is the first step that has not been reached.
	next int
	// open is the step whose calls have no results yet; nil: none is.
	open *taken
	// made counts the steps that have made calls; last is the output of the latest.
	made int
	last string
	// failed is why the plan ends early.
	failed error
}

// taken is a step whose calls were computed.
type taken struct {
	step int
	// args are those of each call; items are what a forEach made them of.
	args  []string
	items []any
	// said names the step, and those that were skipped before it.
	said string
}

// New begins a plan.
func New(o Options) (*Conversation, error) {
	c := &Conversation{program: newProgram(o.Plan), Options: o, inputs: map[string]any{}, results: map[string]any{}}
	raw, err := json.Marshal(o.Inputs)
	if err != nil {
		return nil, reason.New(reason.Internal, "%s: inputs: %w", c.title(), err)
	}
	v, err := c.program.inputs.Decode(raw)
	if err != nil {
		return nil, reason.New(reason.Internal, "%s: inputs: %w", c.title(), err)
	}
	if m, ok := v.(map[string]any); ok {
		c.inputs = m
	}
	return c, nil
}

func (c *Conversation) title() string { return fmt.Sprintf("the plan of skill %q", c.Skill) }

// Next returns the calls of the next step whose condition holds. After the last one it
// returns the output of the plan. An expression that fails, and a step that has failed,
// end the run with ToolError or the reason of the refusal.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", c.title(), model.Explain(context.Cause(ctx)))
	}
	if c.failed != nil {
		return nil, c.failed
	}
	if err := c.advance(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), model.Explain(context.Cause(ctx)))
		}
		return nil, reason.New(reason.ToolError, "%s: %w", c.title(), err).WithHint("correct the plan in the manifest of the skill, and run it again")
	}
	out, err := c.answer(ctx)
	if err != nil {
		return nil, err
	}
	model.Silence(req, out)
	if err := model.Tell(out, whole, emit); err != nil {
		return nil, fmt.Errorf("%s: %w", c.title(), err)
	}
	return out, nil
}

// whole is a text in one piece: it is computed, and not written word by word.
func whole(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// answer is the calls of the open step, or the end of the plan.
func (c *Conversation) answer(ctx context.Context) (*message.Output, error) {
	out := &message.Output{Model: c.As, Finish: message.FinishStop}
	if c.open == nil {
		text, err := c.set.Text(ctx, "spec.plan.output", c.plan.Output, c.vars())
		if err != nil {
			return nil, reason.New(reason.ToolError, "%s: %w", c.title(), err).WithHint("correct the plan in the manifest of the skill, and run it again")
		}
		if c.plan.Output == "" {
			text = c.last
		}
		if out.Text = text; strings.TrimSpace(text) == "" {
			out.Text = fmt.Sprintf("The plan of skill %s is complete.", c.Skill)
		}
		return out, nil
	}
	if c.MaxSteps > 0 && c.made >= c.MaxSteps {
		return nil, reason.New(reason.MaxSteps, "%s: limits.maxSteps is %d, and step %s would be one more", c.title(), c.MaxSteps, c.label(c.open.step)).
			WithHint("raise spec.limits.maxSteps of the agent")
	}
	out.Text, out.Finish = c.open.said, message.FinishToolCalls
	for k, args := range c.open.args {
		out.Calls = append(out.Calls, message.CallRequest{ID: callID(c.open.step, k), Tool: c.plan.Steps[c.open.step].Tool, Args: args})
	}
	return out, nil
}

func (c *Conversation) vars() map[string]any {
	return map[string]any{"steps": c.results, "inputs": c.inputs}
}

func (c *Conversation) label(i int) string { return Label(c.plan.Steps, i) }

// advance finds the next step that makes calls and computes them, unless one is open. It
// leaves none open at the end of the plan.
func (c *Conversation) advance(ctx context.Context) error {
	var said strings.Builder
	for ; c.open == nil && c.next < len(c.plan.Steps); c.next++ {
		t, why, err := c.take(ctx, c.next)
		if err != nil {
			return fmt.Errorf("step %s: %w", c.label(c.next), err)
		}
		fmt.Fprintf(&said, "Step %d of %d, %s", c.next+1, len(c.plan.Steps), c.plan.Steps[c.next].Tool)
		if name := c.names[c.next]; name != "" && name != c.plan.Steps[c.next].Tool {
			said.WriteString(" (" + name + ")")
		}
		if t == nil {
			said.WriteString(" is skipped: " + why + ".\n")
			c.keep(c.next, nil, nil)
			continue
		}
		said.WriteString(".")
		t.said, c.open = said.String(), t
	}
	return nil
}

// take computes the calls of a step; nil and why where it makes none.
func (c *Conversation) take(ctx context.Context, i int) (t *taken, why string, err error) {
	s := &c.plan.Steps[i]
	if s.When != "" {
		prog, err := c.set.Bool(s.When)
		if err != nil {
			return nil, "", fmt.Errorf("%s.when: %w", Path(i), err)
		}
		truth, err := prog.EvalBool(ctx, expr.Input{Vars: c.vars(), Large: true})
		if err != nil {
			return nil, "", fmt.Errorf("%s.when: %s: %w", Path(i), s.When, err)
		}
		if truth != expr.True {
			return nil, "its condition does not hold", nil
		}
	}
	t = &taken{step: i}
	if s.ForEach == "" {
		args, err := c.args(ctx, c.set, i, c.vars())
		t.args = []string{args}
		return t, "", err
	}
	if t.items, err = c.items(ctx, i); err != nil {
		return nil, "", err
	}
	if len(t.items) == 0 {
		return nil, "its list is empty", nil
	}
	for k, item := range t.items {
		vars := c.vars()
		vars["item"], vars["index"] = item, int64(k)
		args, err := c.args(ctx, c.each, i, vars)
		if err != nil {
			return nil, "", fmt.Errorf("item %d: %w", k, err)
		}
		t.args = append(t.args, args)
	}
	return t, "", nil
}

// items is the list of a forEach.
func (c *Conversation) items(ctx context.Context, i int) ([]any, error) {
	src := c.plan.Steps[i].ForEach
	prog, err := c.set.Any(src)
	if err != nil {
		return nil, fmt.Errorf("%s.forEach: %w", Path(i), err)
	}
	v, err := prog.Eval(ctx, c.vars())
	if err != nil {
		return nil, fmt.Errorf("%s.forEach: %s: %w", Path(i), src, err)
	}
	items, ok := v.([]any)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s.forEach: %s: the value is not a list", Path(i), src)
	case len(items) > MaxItems:
		return nil, fmt.Errorf("%s.forEach: %s: the list has %d items, at most %d are allowed", Path(i), src, len(items), MaxItems)
	}
	return items, nil
}

// args are the arguments of a call with the values filled in.
func (c *Conversation) args(ctx context.Context, set *expr.Texts, i int, vars map[string]any) (string, error) {
	left := maxArgs
	args, err := expr.FillArgs(rawArgs(&c.plan.Steps[i]), Path(i)+".args", func(path, text string) (any, error) {
		v, err := set.Value(ctx, path, text, vars)
		if err != nil {
			return nil, err
		}
		if left -= expr.Size(v, left); left < 0 {
			return nil, fmt.Errorf("%s: the arguments would have more than %d KiB", path, maxArgs>>10)
		}
		return v, nil
	})
	return args, err
}

// Append takes note of the results of a step. On a resume the message is one of an earlier
// process, whose step is the next.
func (c *Conversation) Append(m *message.Message) error {
	if m.Role != message.RoleAssistant || m.Summary || m.Error == message.Void || m.Finish == "" && m.Error != "" {
		return nil
	}
	if err := c.advance(context.Background()); err != nil {
		return reason.New(reason.Internal, "%s: message %s: %w", c.title(), m.ID, err)
	}
	calls := m.Calls()
	if c.open == nil || len(calls) == 0 {
		return nil
	}
	if len(calls) != len(c.open.args) {
		return reason.New(reason.Internal, "%s: message %s has %d calls, and step %s makes %d", c.title(), m.ID, len(calls), c.label(c.open.step), len(c.open.args))
	}
	t := c.open
	c.keep(t.step, t.items, calls)
	c.open, c.made = nil, c.made+1
	if c.plan.Steps[t.step].OnError != v1alpha1.StepContinue {
		c.failed = c.failure(t.step, calls)
	}
	return nil
}

// Reset changes nothing: the next step follows from the results, which are kept.
func (c *Conversation) Reset([]*message.Message) error { return nil }

// keep makes the results of a step readable. Without calls it was skipped.
func (c *Conversation) keep(i int, items []any, calls []*message.ToolPart) {
	for _, call := range calls {
		if call.Result != nil {
			c.last = strings.ToValidUTF8(call.Result.Output, "\uFFFD")
		}
	}
	name := c.names[i]
	switch {
	case name == "":
	case c.plan.Steps[i].ForEach != "":
		c.results[name] = resultsOf(items, calls)
	case len(calls) == 0:
		c.results[name] = resultOf(nil)
	default:
		c.results[name] = resultOf(calls[0])
	}
}

// callID names a call by its step and its place in it, the same in every run.
func callID(step, k int) string { return fmt.Sprintf("call_%d_%d", step+1, k+1) }

// stepOf is the step of a call; false for an id that callID has not made.
func stepOf(id string) (int, bool) {
	step, _, ok := strings.Cut(strings.TrimPrefix(id, "call_"), "_")
	n, err := strconv.Atoi(step)
	return n - 1, ok && err == nil
}
