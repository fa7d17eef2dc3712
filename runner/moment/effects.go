package moment

import (
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Effect is something outside of the files and the conversation that a run has done. It
// stays done, whatever becomes of the run.
type Effect struct {
	// Kind is Network, Publish, Message, Money, Source or InPlace.
	Kind string `json:"kind"`
	// Call has had it; "" where no call is known.
	Call string `json:"call,omitempty"`
	// Text says what it is, for people.
	Text string `json:"text"`
}

// Effects are those of events. Declared are the effects of tools, by call name; nil: those
// that the events name themselves are all that is known.
func Effects(events []event.Event, declared map[string][]v1alpha1.Effect, inPlace bool) []Effect {
	var all []Effect
	add := func(e Effect) {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	tools, wrote := map[string]string{}, false
	ended := func(call string, r *message.ToolResult) {
		tool := tools[call]
		for _, kind := range []v1alpha1.Effect{v1alpha1.EffectNetwork, v1alpha1.EffectMessage, v1alpha1.EffectMoney} {
			if slices.Contains(declared[tool], kind) {
				add(Effect{string(kind), call, "a call of " + tool})
			}
		}
		wrote = wrote || r.Writes
	}
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ToolCall:
			tools[e.Call] = d.Tool
		case event.ToolResult:
			ended(e.Call, &d.ToolResult)
		case event.ToolError:
			ended(e.Call, &d.ToolResult)
		case event.EgressConnection:
			if d.Decision == message.Allow && d.Address != "" {
				add(Effect{"Network", e.Call, "a connection to " + d.Host})
			}
		case event.WorkspaceApplied:
			add(Effect{"Source", "", "its change was applied to " + d.Source})
		case event.PublishItem:
			if d.State == event.PublishSent {
				add(Effect{"Publish", e.Call, d.Name + " was published"})
			}
		}
	}
	if wrote && inPlace {
		add(Effect{"InPlace", "", "calls have worked in place"})
	}
	return all
}
