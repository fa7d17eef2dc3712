package agenttest

import (
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/workspace"
)

// maxEvents bounds the events that expectations see.
const maxEvents = 20_000

// file is a file that a run has changed.
type file struct {
	Change string
	Type   workspace.Type
	Size   int64
	// Content is nil where it is not text, is too large, or is not there.
	Content *string
	// Target of a link.
	Target string
}

// subject is a run that has ended.
type subject struct {
	Run *view.Run
	// Events of the run that expectations see.
	Events []event.Event
	// Below are the runs that its calls have started, in the order in which they began.
	Below []below
	// Files returns those that it has changed, by path. It is asked once, if an expectation
	// reads them.
	Files func() (map[string]file, error)
}

// below is a run that a call has started.
type below struct {
	Run    *view.Run
	Events []event.Event
}

// values are the variables of the expectations about a run. The map is for one goroutine.
// The error is about the files or the events, which are made if they are read.
func values(s *expect.Set, of *subject, files, events bool) (map[string]any, error) {
	vars := map[string]any{
		"result": result(s, of.Run), "calls": calls(s, of.Run), "decisions": decisions(of.Run, of.Events), "children": children(s, of),
		"prompt": of.Run.Started.Prompt, "inputs": map[string]any{}, "files": map[string]any{}, "events": []any{},
	}
	if raw := of.Run.Started.Inputs; len(raw) > 0 && string(raw) != "null" {
		inputs, err := s.Inputs(raw)
		if err != nil {
			return nil, fmt.Errorf("read the inputs: %w", err)
		}
		vars["inputs"] = inputs
	}
	if files {
		all, err := of.Files()
		if err != nil {
			return nil, fmt.Errorf("read the changed files: %w", err)
		}
		vars["files"] = fileValues(all)
	}
	if events {
		all, err := eventValues(s, of.Events)
		if err != nil {
			return nil, err
		}
		vars["events"] = all
	}
	return vars, nil
}

func result(s *expect.Set, v *view.Run) map[string]any {
	r := v.Result("")
	out := map[string]any{
		"agent": r.Agent, "phase": r.Phase, "reason": r.Reason, "exitCode": int64(r.ExitCode), "message": r.Message, "output": expect.Text(r.Output),
		"steps": int64(r.Steps), "durationMs": r.DurationMs, "changesError": r.ChangesError, "warnings": list(r.Warnings),
		"tokens": map[string]any{
			"input": r.Tokens.Input, "output": r.Tokens.Output, "reasoning": r.Tokens.Reasoning, "cacheRead": r.Tokens.CacheRead,
			"cacheWrite": r.Tokens.CacheWrite, "total": v.Tokens.Total(),
		},
		"calls": map[string]any{
			"done": int64(r.Calls.Done), "refused": int64(r.Calls.Refused), "asked": int64(r.Calls.Asked), "repaired": int64(r.Calls.Repaired),
		},
	}
	if r.Cost != nil {
		out["cost"] = r.Cost.Dollars()
	}
	if structured, err := s.Structured(r.Output); err == nil {
		out["structured"] = structured
	}
	return out
}

func calls(s *expect.Set, v *view.Run) []any {
	all := []any{}
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			all = append(all, call(s, c))
		}
	}
	return all
}

// call is a tool call. The keys are those of -o json, with its output.
func call(s *expect.Set, c *message.ToolPart) map[string]any {
	out := map[string]any{
		"id": c.CallID, "tool": c.Tool, "args": map[string]any{}, "decision": "", "rule": "", "approval": string(c.Approval),
		"state": string(c.State), "error": "", "output": "", "durationMs": int64(0),
	}
	if args, err := s.Value(c.Input); err == nil && args != nil {
		out["args"] = args
	} else if args, err := s.Value(json.RawMessage(c.Raw)); err == nil && args != nil { // they did not fit the schema
		out["args"] = args
	} else if c.Raw != "" {
		out["args"] = expect.Text(c.Raw)
	}
	if d := c.Decision; d != nil {
		out["decision"], out["rule"] = string(d.Action), d.Rule
	}
	if r := c.Result; r != nil {
		out["error"], out["durationMs"] = string(r.Code), (r.DurationMicros+500)/1000
		if out["output"] = expect.Text(r.Output); r.Output == "" && r.Failed() {
			out["output"] = expect.Text(r.Text) // why it did not run
		}
		if r.ExitCode != nil {
			out["exitCode"] = int64(*r.ExitCode)
		}
		if k := r.Child; k != nil {
			out["child"] = map[string]any{"agent": k.Agent, "run": k.Run, "phase": k.Phase, "reason": k.Reason}
		}
	}
	return out
}

// decisions are what the policy has answered, in order.
func decisions(v *view.Run, events []event.Event) []any {
	all := []any{}
	for i := range events {
		d, ok := events[i].Data.(event.PolicyDecision)
		if !ok {
			continue
		}
		tool := ""
		if c := v.Call(events[i].Call); c != nil {
			tool = c.Tool
		}
		all = append(all, map[string]any{
			"call": events[i].Call, "tool": tool, "action": string(d.Action), "rule": d.Rule, "message": expect.Text(d.Message), "risk": d.Risk, "source": d.Source,
		})
	}
	return all
}

// children are the runs below. Of a recording only their ends are known.
func children(s *expect.Set, of *subject) []any {
	all, known := []any{}, map[string]bool{}
	for _, b := range of.Below {
		known[b.Run.ID] = true
		r := b.Run.Result("")
		all = append(all, map[string]any{
			"agent": r.Agent, "run": r.Run, "phase": r.Phase, "reason": r.Reason, "output": expect.Text(r.Output), "steps": int64(r.Steps),
			"calls": calls(s, b.Run), "decisions": decisions(b.Run, b.Events),
		})
	}
	for _, c := range of.Run.Children() {
		if !known[c.Run] {
			all = append(all, map[string]any{
				"agent": c.Agent, "run": c.Run, "phase": c.Phase, "reason": c.Reason, "output": "", "steps": int64(c.Steps), "calls": []any{}, "decisions": []any{},
			})
		}
	}
	return all
}

func fileValues(all map[string]file) map[string]any {
	out := make(map[string]any, len(all))
	for path, f := range all {
		v := map[string]any{"change": f.Change, "type": string(f.Type), "size": f.Size}
		if f.Content != nil {
			v["content"] = *f.Content
		}
		if f.Target != "" {
			v["target"] = f.Target
		}
		out[path] = v
	}
	return out
}

func eventValues(s *expect.Set, events []event.Event) ([]any, error) {
	if len(events) > maxEvents {
		return nil, fmt.Errorf("the run has more than %d events: an expectation over them cannot be evaluated", maxEvents)
	}
	all := make([]any, 0, len(events))
	for i := range events {
		e := &events[i]
		v := map[string]any{
			"seq": e.Seq, "type": string(e.Type()), "time": e.Time.UTC().Format(event.TimeFormat), "call": e.Call, "message": e.Message, "data": map[string]any{},
		}
		raw, err := json.Marshal(e.Data)
		if err == nil {
			v["data"], err = s.Value(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("read event %d: %w", e.Seq, err)
		}
		all = append(all, v)
	}
	return all, nil
}

func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = expect.Text(t)
	}
	return all
}
