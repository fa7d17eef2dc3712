// Package scripted answers from the manifest: a model for demos, tests and docs that needs no key and no network.
package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/model"
)

// pieces is into how many deltas a text is cut, so that watchers see a stream.
const pieces = 4

// Options is what a script may read.
type Options struct {
	// Name of the Model object, for errors and answers.
	Name string
	// Prompt of the run: the variable prompt.
	Prompt string
	// Inputs of the run as a JSON object: the variable inputs.
	Inputs json.RawMessage
	// Program is the script compiled elsewhere, for example at admission; nil
	// compiles what the run needs.
	Program *Program
}

// Conversation is a model.Conversation that takes its answers from a script.
//
// A step is used up when its answer is complete. A message that is appended
// without having been answered here is an earlier answer of a run that is
// resumed: it uses up the step that was taken then, because the step follows
// from what was appended before. A summary is such an answer, too; the answer of
// another model counts as a turn and uses up nothing.
type Conversation struct {
	name    string
	program *Program
	inputs  map[string]any
	prompt  string

	// first is the first step that may be unused; used marks those behind it.
	first int
	used  map[int]bool
	turn  int64
	last  map[string]any
	// answered: the latest answer has not been appended yet; aside: the same for an answer
	// to a question outside the conversation.
	answered, aside bool
}

// New begins a conversation. A script reads neither the system prompt nor the
// tools; they are parameters as for every provider.
func New(script *v1alpha1.Script, o Options, _ message.Prompt) (*Conversation, error) {
	c := &Conversation{
		name: o.Name, program: o.Program, prompt: o.Prompt, used: map[int]bool{},
		last: map[string]any{"tool": "", "output": "", "exitCode": int64(0), "error": ""},
	}
	if c.program == nil {
		c.program = NewProgram(script)
	}
	inputs, err := decodeInputs(o.Inputs)
	if err != nil {
		return nil, reason.New(reason.Internal, "model %q: inputs: %w", o.Name, err)
	}
	c.inputs = inputs
	return c, nil
}

// decodeInputs keeps whole numbers whole.
func decodeInputs(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	m := map[string]any{}
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if m == nil {
		m = map[string]any{}
	}
	plain, ok := numbers(m).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("not an object")
	}
	return plain, nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// Append takes note of a message: what the last tool said, and, on a resume,
// which step it came from.
func (c *Conversation) Append(m *message.Message) error {
	if m.Role != message.RoleAssistant {
		return nil
	}
	switch {
	case m.Error == message.Void, m.Finish == "" && m.Error != "":
		// The answer never was complete: its step is still unused.
		return nil
	case m.Summary && c.aside:
		c.aside = false
	case !m.Summary && c.answered:
		c.answered = false
	case m.Model != nil && m.Model.Name != c.name:
		c.turn++
	default:
		i, err := c.pick(context.Background())
		if err != nil {
			return reason.New(reason.ModelError, "model %q: message %s: %w", c.name, m.ID, err)
		}
		c.use(i)
	}
	for _, call := range m.Calls() {
		if call.Result != nil {
			c.last = lastOf(call)
		}
	}
	return nil
}

func lastOf(call *message.ToolPart) map[string]any {
	exit := int64(0)
	if call.Result.ExitCode != nil {
		exit = int64(*call.Result.ExitCode)
	}
	return map[string]any{
		"tool": call.Tool, "output": strings.ToValidUTF8(call.Result.Output, "\uFFFD"),
		"exitCode": exit, "error": string(call.Result.Code),
	}
}

func (c *Conversation) vars() map[string]any {
	return map[string]any{"turn": c.turn, "prompt": c.prompt, "inputs": c.inputs, "last": c.last}
}

// pick returns the step to take, or -1 when none is left.
func (c *Conversation) pick(ctx context.Context) (int, error) {
	vars := c.vars()
	for i := c.first; i < len(c.program.script.Steps); i++ {
		if c.used[i] {
			continue
		}
		ok, err := c.program.holds(ctx, i, vars)
		if err != nil {
			return -1, err
		}
		if ok {
			return i, nil
		}
	}
	return -1, nil
}

// use marks a step as used and counts the answer.
func (c *Conversation) use(i int) {
	c.turn++
	if i >= 0 {
		c.used[i] = true
	}
	for c.used[c.first] {
		delete(c.used, c.first)
		c.first++
	}
}

// Next takes the first unused step whose condition holds. None left is an empty
// answer; an expression that fails is a ModelError that names it.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("model %q: %w", c.name, model.Explain(context.Cause(ctx)))
	}
	i, err := c.pick(ctx)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	out := &message.Output{Finish: message.FinishStop, Model: message.ModelRef{Name: c.name, Provider: string(v1alpha1.ProviderScripted)}}
	if i >= 0 {
		if err := c.answer(ctx, i, req.NoTools || req.Aside != nil, out); err != nil {
			return nil, c.failed(ctx, err)
		}
	}
	if err := model.Tell(out, cut, emit); err != nil {
		return nil, fmt.Errorf("model %q: %w", c.name, err)
	}
	c.use(i)
	if req.Aside != nil {
		c.aside = true
	} else {
		c.answered = true
	}
	return out, nil
}

func (c *Conversation) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("model %q: %w", c.name, model.Explain(context.Cause(ctx)))
	}
	return reason.New(reason.ModelError, "model %q: %w", c.name, err).WithHint("the expression can be mended in the Model's manifest")
}

// answer fills out with the answer of step i.
func (c *Conversation) answer(ctx context.Context, i int, noTools bool, out *message.Output) error {
	step, vars := &c.program.script.Steps[i], c.vars()
	render := func(path, text string) (string, error) { return c.program.set.Text(ctx, path, text, vars) }
	// A string stays one even where it is one expression and nothing else: arguments would
	// otherwise change their type with the data.
	keep := func(path, text string) (any, error) { return render(path, text) }
	var err error
	if out.Reasoning, err = render(stepPath(i)+".reasoning", step.Reasoning); err != nil {
		return err
	}
	if out.Text, err = render(stepPath(i)+".say", step.Say); err != nil {
		return err
	}
	if noTools {
		return nil
	}
	for k, call := range step.Calls {
		args, err := expr.FillArgs(rawArgs(&call), callPath(i, k)+".args", keep)
		if err != nil {
			return err
		}
		// The id follows from the place in the conversation, so that a replay
		// gives the same one.
		id := fmt.Sprintf("call_%d_%d", c.turn+1, k+1)
		out.Calls = append(out.Calls, message.CallRequest{ID: id, Tool: call.Tool, Args: args})
		out.Finish = message.FinishToolCalls
	}
	return nil
}

// cut divides a text into a few pieces, never inside a character.
func cut(s string) []string {
	var out []string
	size := max(16, (len(s)+pieces-1)/pieces)
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// Reset changes nothing: a script depends on the requests, not on the messages that are
// left.
func (c *Conversation) Reset([]*message.Message) error { return nil }
