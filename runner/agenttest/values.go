package agenttest

import (
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/evidence"
	"agentctl.dev/agentctl/runner/expect"
)

// maxEvents bounds the events that expectations see.
const maxEvents = 20_000

// subject is a run that has ended.
type subject struct {
	Run *view.Run
	// Events of the run that expectations see.
	Events []event.Event
	// Below are the runs that its calls have started, in the order in which they began.
	Below []below
	// Files returns those that it has changed, by path. It is asked once, if an expectation
	// reads them.
	Files func() (map[string]any, error)
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
		"result": evidence.Result(s, of.Run), "calls": evidence.Calls(s, of.Run), "decisions": decisions(of.Run, of.Events), "children": children(s, of),
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
		vars["files"] = all
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
		all = append(all, evidence.Decision(events[i].Call, tool, &d.Decision))
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
			"calls": evidence.Calls(s, b.Run), "decisions": decisions(b.Run, b.Events),
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
