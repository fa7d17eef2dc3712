package cassette

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Request is a request to a model and what came of it.
type Request struct {
	// Message is the id of the answer, Step the number of its step.
	Message string
	Step    int
	// Summary is set on a request for a summary.
	Summary bool
	// Line of the request.
	Line int
	// Events are the events of its answer up to the last, in order: deltas, retries, the
	// ends of its parts.
	Events []Entry
	// Output is the answer; nil when the request failed or was given up.
	Output *message.Output
}

// Requests lists the requests of a life in order.
func Requests(life []Entry) []Request {
	raw, counted := written(life), true
	var all []Request
	var open *Request
	for i, e := range life {
		switch d := e.Data.(type) {
		case event.ModelRequest:
			all = append(all, Request{Message: e.Message, Step: d.Step, Summary: d.Summary, Line: e.Line})
			open = &all[len(all)-1]
			continue
		case event.ModelResponse:
			if open == nil || open.Message != e.Message {
				continue
			}
			out := answer(open.Events, raw)
			out.Finish, out.Usage, out.Model = d.Finish, d.Tokens, d.Model
			counted = counted && !guessed(life[i+1:])
			out.Uncounted = (!counted || d.Estimate != nil) && d.Tokens.Total() == 0
			open.Output, open = out, nil
		case event.ContextCompaction:
			if open == nil || open.Message != e.Message {
				continue
			}
			open.Output = &message.Output{Text: d.Summary, Finish: message.FinishStop, Usage: d.Tokens, Model: d.Model, Uncounted: d.Estimate != nil}
			open = nil
		}
		if open != nil && open.Message == e.Message && e.Message != "" {
			open.Events = append(open.Events, e)
		}
	}
	return all
}

// written is what the model wrote as arguments of the calls that were looked at.
func written(life []Entry) map[string]string {
	raw := map[string]string{}
	for _, e := range life {
		if d, ok := e.Data.(event.ToolInputEnd); ok {
			raw[e.Call] = d.Raw
		}
	}
	return raw
}

// Uncounted begins the warning about answers that a provider does not count.
const Uncounted = "the model's provider does not say how many tokens"

// guessed reports whether an answer was the first for which the provider sent no usage.
func guessed(after []Entry) bool {
	for _, e := range after {
		w, ok := e.Data.(event.Warning)
		switch {
		case ok && e.Message == "" && e.Call == "":
			if strings.HasPrefix(w.Message, Uncounted) {
				return true
			}
		case e.Type() != event.TypeEgressConnection && e.Type() != event.TypeSecretResolved:
			return false
		}
	}
	return false
}

// Renamed reports whether a warning is about a call that was given another id than the
// model's: the recorded answer has the new id already.
func Renamed(e Entry, after []Entry) bool {
	if e.Type() != event.TypeWarning || e.Message == "" || e.Call != "" {
		return false
	}
	i := slices.IndexFunc(after, func(o Entry) bool { return o.Message == e.Message })
	return i >= 0 && after[i].Type() == event.TypeToolInputStart
}

// answer assembles the events since the last retry.
func answer(entries []Entry, raw map[string]string) *message.Output {
	out := &message.Output{}
	at := map[string]int{}
	var args [][]byte
	for i, e := range entries {
		switch d := e.Data.(type) {
		case event.ModelRetry:
			out, at, args = &message.Output{}, map[string]int{}, nil
		case event.TextEnd:
			out.Text, out.TextMetadata = d.Text, d.Metadata
		case event.ReasoningEnd:
			out.Reasoning, out.ReasoningMetadata = d.Text, d.Metadata
		case event.ToolInputStart:
			at[e.Call] = len(out.Calls)
			out.Calls, args = append(out.Calls, message.CallRequest{ID: e.Call, Tool: d.Tool}), append(args, nil)
		case event.ToolInputDelta:
			if k, ok := at[e.Call]; ok {
				args[k] = append(args[k], d.Text...)
				if len(d.Metadata) > 0 {
					out.Calls[k].Metadata = d.Metadata
				}
			}
		case event.Warning:
			if e.Call == "" && !Renamed(e, entries[i+1:]) {
				out.Warnings = append(out.Warnings, d.Message)
			}
		}
	}
	for i := range out.Calls {
		out.Calls[i].Args = string(args[i])
		if text, ok := raw[out.Calls[i].ID]; ok {
			out.Calls[i].Args = text
		}
	}
	return out
}
