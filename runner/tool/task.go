package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// Task is the work of a call that starts an agent.
type Task struct {
	Agent, Prompt string
	// Inputs of the agent.
	Inputs map[string]json.RawMessage
	// Declared says that a Tool of the agent's list names the other agent: it need not
	// be one of its subagents.
	Declared bool
	// Resume is the run of an earlier call whose conversation the new run continues, or
	// "last"; "" begins a new one.
	Resume string
}

// ChildEnd is the end of the run that a call has started.
type ChildEnd struct {
	message.ChildRun
	// Failed says that the run has not succeeded.
	Failed bool
	// Output is the final answer, or the newest text of a run that has none; Message is
	// why a run failed.
	Output, Message string
}

// Subagents starts the run of a call, or continues the one that the call has started
// before, and waits for its end. A *message.CallError is a refusal that the model reads;
// any other error ends the run of the call. It is called by several goroutines.
type Subagents func(ctx context.Context, call message.ToolCall, t Task, progress func(string)) (*ChildEnd, error)

// tasks answers the calls that start an agent.
func tasks() HostTool { return HostTool{Tool: taskTool, Answer: startTask} }

const taskTool = "task"

// taskOf reads the arguments of a call. A Tool that names its agent takes the prompt and
// the inputs of that agent.
func taskOf(agent string, call message.ToolCall) (t Task, err error) {
	if agent == "" {
		return t, json.Unmarshal(call.Args, &t)
	}
	t.Agent, t.Declared = agent, true
	if err := json.Unmarshal(call.Args, &t.Inputs); err != nil {
		return t, err
	}
	if prompt, ok := t.Inputs["prompt"]; ok {
		delete(t.Inputs, "prompt")
		err = json.Unmarshal(prompt, &t.Prompt)
	}
	return t, err
}

// startTask runs an agent to its end. What the model reads is its final answer, and below
// it which run that was.
func startTask(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	t, err := taskOf(h.Agent, call)
	if err != nil {
		return nil, err
	}
	if h.Subagents == nil {
		return h.Result(Reply{Output: "no agent can be started here", Failed: true})
	}
	end, err := h.Subagents(ctx, call, t, h.Progress)
	if refused, ok := errors.AsType[*message.CallError](err); ok {
		return h.Result(Reply{Output: refused.Text, Failed: true, Code: refused.Code})
	}
	if err != nil {
		return nil, err
	}
	reply := Reply{Output: end.Output, Title: end.Agent + ": run/" + end.Run, Failed: end.Failed}
	if reply.Failed && ctx.Err() != nil {
		reply.Code = message.CodeCancelled
	}
	result, err := h.Result(reply)
	if err != nil {
		return nil, err
	}
	result.Child = &end.ChildRun
	result.Text += fmt.Sprintf("\n[agent %s, run/%s: %s", end.Agent, end.Run, end.Reason)
	if end.Message != "" {
		result.Text += ": " + end.Message
	}
	result.Text += "]" + inCopy(&end.ChildRun)
	return result, nil
}

// mostNamed is how many changed files the model is shown by name.
const mostNamed = 50

// fileName is the name of a file in a text for the model. One that could be taken for other
// words of the text, as one of several lines, is quoted.
func fileName(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name || strings.ContainsAny(name, ",[]()") {
		return quoted
	}
	return name
}

// inCopy says what a run has changed in its copy, and how that is taken over.
func inCopy(c *message.ChildRun) string {
	switch {
	case c.Changes == nil:
		return ""
	case c.Changes.Unmergeable != "":
		return "\n[what it has changed in its copy of the files cannot be taken over: " + c.Changes.Unmergeable + "]"
	case len(c.Changes.Changed)+len(c.Changes.Deleted) == 0:
		return "\n[it has changed no files]"
	}
	names := make([]string, 0, len(c.Changes.Changed)+len(c.Changes.Deleted))
	for _, f := range c.Changes.Changed {
		names = append(names, fileName(f))
	}
	for _, f := range c.Changes.Deleted {
		names = append(names, fileName(f)+" (deleted)")
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("\n[changed in its copy of the files: %s. To take that over call %s with run: run/%s]", strings.Join(names, ", "), mergeTool, c.Run)
}
