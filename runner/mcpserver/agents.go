package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// Agent is an agent that clients can run.
type Agent struct {
	Name, Description string
	// Inputs and Output are JSON Schemas; nil where the agent declares none.
	Inputs, Output json.RawMessage
}

// Task is a run that a client asks for.
type Task struct {
	Agent, Prompt string
	Inputs        map[string]json.RawMessage
	// Progress shows a line of text to the client.
	Progress func(text string)
}

// RunFunc runs an agent until it has an answer. An error means that no run was begun.
type RunFunc func(ctx context.Context, t Task) (view.Result, error)

// Agents returns a tool for each agent: a call runs it. At most parallel runs are in
// progress; further calls wait for their turn.
func Agents(agents []Agent, parallel int, run RunFunc) []Tool {
	turns := make(chan struct{}, max(1, parallel))
	tools := make([]Tool, 0, len(agents))
	for _, a := range agents {
		structured := ofObject(a.Output)
		t := Tool{Name: toolName(a.Name), Description: a.describe(), Input: a.input(), Call: func(ctx context.Context, c Call) (*Result, error) {
			task, err := a.task(c)
			if err != nil {
				return nil, err
			}
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			defer func() { <-turns }()
			result, err := run(ctx, task)
			if err != nil {
				return nil, explained(err)
			}
			return finished(result, structured), nil
		}}
		if structured {
			t.Output = a.Output
		}
		tools = append(tools, t)
	}
	return tools
}

// toolName is an agent's name as hosts accept one.
func toolName(agent string) string { return strings.ReplaceAll(agent, ".", "_") }

func (a *Agent) describe() string {
	if a.Description == "" {
		return fmt.Sprintf("Runs the agent %s until it has an answer.", a.Name)
	}
	return a.Description
}

// input is the schema of the arguments. Inputs with references stay opaque here, because
// they would lead elsewhere; the agent's own check counts in any case.
func (a *Agent) input() json.RawMessage {
	properties := map[string]json.RawMessage{"prompt": json.RawMessage(`{"type":"string","description":"What the agent is to do."}`)}
	required := []string{"prompt"}
	if len(a.Inputs) > 0 {
		properties["inputs"], required = a.Inputs, []string{"inputs"}
		if strings.Contains(string(a.Inputs), `"$ref"`) {
			properties["inputs"] = emptySchema
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		return emptySchema
	}
	return raw
}

// task reads the arguments of a call.
func (a *Agent) task(c Call) (Task, error) {
	in := struct {
		Prompt string                     `json:"prompt"`
		Inputs map[string]json.RawMessage `json:"inputs"`
	}{}
	d := json.NewDecoder(strings.NewReader(string(c.Args)))
	d.DisallowUnknownFields()
	if len(c.Args) > 0 {
		if err := d.Decode(&in); err != nil {
			return Task{}, fmt.Errorf("the arguments of agent %s are not {\"prompt\": …}: %w", a.Name, err)
		}
	}
	switch {
	case len(a.Inputs) == 0 && len(in.Inputs) > 0:
		return Task{}, fmt.Errorf("agent %s takes no inputs", a.Name)
	case len(a.Inputs) == 0 && strings.TrimSpace(in.Prompt) == "":
		return Task{}, fmt.Errorf("agent %s needs a prompt", a.Name)
	}
	return Task{Agent: a.Name, Prompt: in.Prompt, Inputs: in.Inputs, Progress: c.Progress}, nil
}

// explained adds to an error how to go on.
func explained(err error) error {
	if usage, ok := errors.AsType[*reason.UsageError](err); ok && usage.Hint != "" {
		return fmt.Errorf("%w; %s", err, usage.Hint)
	}
	return err
}

// finished is the result of a run.
func finished(r view.Result, structured bool) *Result {
	out := &Result{Failed: r.ExitCode != 0, Meta: map[string]string{"run": r.Run, "reason": r.Reason}}
	if r.Output != "" {
		out.Text = append(out.Text, r.Output)
	}
	end := fmt.Sprintf("[run %s ended: %s", r.Run, r.Reason)
	if r.Message != "" {
		end += ": " + r.Message
	}
	if n := len(r.ChangedFiles) + r.ChangedFilesOmitted; n > 0 {
		end += fmt.Sprintf("; %d changed files, see: agentctl diff %s", n, r.Run)
	}
	out.Text = append(out.Text, end+"]")
	if structured && !out.Failed && isObject(r.Output) {
		out.Structured = json.RawMessage(r.Output)
	}
	return out
}

// ofObject reports whether a schema describes an object: hosts of every version of the
// protocol accept one for results.
func ofObject(schema json.RawMessage) bool {
	var s struct{ Type string }
	return len(schema) > 0 && json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}
