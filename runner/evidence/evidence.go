// Package evidence makes what expressions about a run read, and judges the evidence that an agent declares.
package evidence

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expect"
)

// Result is the variable result of a run.
func Result(s *expect.Set, v *view.Run) map[string]any {
	r := v.Result("")
	out := map[string]any{
		"agent": r.Agent, "phase": r.Phase, "reason": r.Reason, "exitCode": int64(r.ExitCode), "message": r.Message, "output": expect.Text(r.Output),
		"steps": int64(r.Steps), "durationMs": r.DurationMs, "changesError": r.ChangesError, "warnings": texts(r.Warnings),
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

// Calls is the variable calls of a run.
func Calls(s *expect.Set, v *view.Run) []any {
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
		"state": string(c.State), "error": "", "output": "", "durationMs": int64(0), "commands": commands(s, c),
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

// Decisions are the newest answers of the policy about each call.
func Decisions(v *view.Run) []any {
	all := []any{}
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			if d := c.Decision; d != nil {
				all = append(all, Decision(c.CallID, c.Tool, d))
			}
		}
	}
	return all
}

// Decision is an answer of the policy about a call.
func Decision(call, tool string, d *message.Decision) map[string]any {
	return map[string]any{"call": call, "tool": tool, "action": string(d.Action), "rule": d.Rule, "message": expect.Text(d.Message), "risk": d.Risk, "source": d.Source}
}

// texts is a list of texts as expressions take it.
func texts(list []string) []any {
	all := make([]any, len(list))
	for i, t := range list {
		all[i] = expect.Text(t)
	}
	return all
}
