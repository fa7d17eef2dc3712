package runner

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
)

// FuzzReplayPlan replays a short run with whatever plan a forger has written, and
// whatever the model is said to have called.
func FuzzReplayPlan(f *testing.F) {
	const plan = `{"agent":{"metadata":{"name":"a"},"spec":{"instructions":"x","output":{"schema":{"type":"object"}}}},"model":{"metadata":{"name":"m"},"spec":{"provider":"scripted"}},` +
		`"tools":[{"tool":{"metadata":{"name":"t"},"spec":{"callName":"t","parameters":{"type":"object"},"source":{"exec":{"command":["x"]}}}}}],"limits":{"maxSteps":5},"system":"x"}`
	f.Add([]byte(plan), []byte(`{"type":"object"}`), "t", `{}`)
	f.Add([]byte(`{"agent":{},"model":{},"tools":null}`), []byte(`null`), "", ``)
	f.Fuzz(func(t *testing.T, plan, parameters []byte, name, args string) {
		if !json.Valid(plan) || !json.Valid(parameters) {
			return
		}
		c := &cassette.Cassette{Name: "x", Plan: plan, Header: cassette.Header{Run: "r"}, Tools: []cassette.Tool{{Name: name, Parameters: parameters}}}
		for i, p := range []event.Payload{
			event.RunStarted{Agent: "a", Prompt: "go"},
			event.StepStart{Step: 1},
			event.ModelRequest{Step: 1, Messages: 1},
			event.ToolInputStart{Tool: name},
			event.ToolInputDelta{Text: args},
			event.ModelResponse{Finish: message.FinishToolCalls},
			event.ToolInputEnd{Tool: name, Raw: args},
			event.PolicyDecision{Decision: message.Decision{Action: message.Allow}},
			event.ToolCall{Tool: name},
			event.ToolResult{},
			event.StepFinish{Step: 1},
			event.RunFinished{Phase: "Failed"},
		} {
			e := event.Event{Seq: int64(i + 1), Run: "r", Time: time.UnixMilli(int64(i)), Message: "m", Part: "p", Data: p}
			if i > 2 && i < 11 && p.Type() != event.TypeModelResponse {
				e.Call = "c"
			}
			c.Events = append(c.Events, e)
		}
		var b bytes.Buffer
		if err := c.Write(&b); err != nil {
			t.Skip("it cannot be written")
		}
		read, err := cassette.Read("x", &b)
		if err != nil {
			t.Fatal(err)
		}
		r, err := replayCassette(t.Context(), read, nil)
		if err == nil && r.Run.Finished == nil {
			t.Fatal("a replay without an end")
		}
		if err != nil && reason.Of(err) == "" {
			t.Fatalf("an error without a reason: %v", err)
		}
	})
}
