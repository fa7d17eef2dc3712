package runner

import (
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// half is an answer that did not end by itself, and what becomes of the run.
type half struct {
	finish   string
	want     reason.Reason
	requests int
}

// halves are the words for an end that is not a good one, of each wire format. A
// run that is told "cut at the limit" goes on when the answer was a call.
var halves = map[modeltest.Wire]map[string]half{
	modeltest.Chat: {
		"length":     {"length", reason.OutputTruncated, 1},
		"window":     {"model_length", reason.OutputTruncated, 1},
		"filter":     {"content_filter", reason.ContentFiltered, 1},
		"error":      {"error", reason.ProviderUnavailable, 2},
		"abort":      {"abort", reason.ProviderUnavailable, 2},
		"resources":  {"insufficient_system_resource", reason.ProviderUnavailable, 2},
		"malformed":  {"malformed_function_call", reason.ModelError, 2},
		"not listed": {"banana", reason.ModelError, 1},
	},
	modeltest.Responses: {
		"length":     {"max_output_tokens", reason.OutputTruncated, 1},
		"filter":     {"content_filter", reason.ContentFiltered, 1},
		"not listed": {"banana", reason.ModelError, 1},
	},
	modeltest.Anthropic: {
		"length":     {"max_tokens", reason.OutputTruncated, 1},
		"window":     {"model_context_window_exceeded", reason.OutputTruncated, 1},
		"refusal":    {"refusal", reason.ContentFiltered, 1},
		"not listed": {"banana", reason.ModelError, 1},
	},
	modeltest.Gemini: {
		"length":          {"MAX_TOKENS", reason.OutputTruncated, 1},
		"safety":          {"SAFETY", reason.ContentFiltered, 1},
		"armor":           {"MODEL_ARMOR", reason.ContentFiltered, 1},
		"malformed":       {"MALFORMED_FUNCTION_CALL", reason.ModelError, 2},
		"unexpected call": {"UNEXPECTED_TOOL_CALL", reason.ModelError, 2},
		"other":           {"OTHER", reason.ModelError, 1},
		"too many calls":  {"TOO_MANY_TOOL_CALLS", reason.ModelError, 1},
		"not listed":      {"BANANA", reason.ModelError, 1},
	},
}

// begun is a call of a tool that needs no arguments, of which none has come yet.
var begun = []modeltest.Call{{ID: "call_a", Tool: "wipe", Args: ""}}

// TestHalfAnAnswerIsNoAnswer runs an agent against a server whose answer does not
// end by itself: with a text, which must not be the output of a completed run, and
// with a call that has just begun, which must not run as one without arguments.
func TestHalfAnAnswerIsNoAnswer(t *testing.T) {
	for wire, all := range halves {
		t.Run(wire.Name()+"/whole", func(t *testing.T) {
			t.Parallel()
			out, _ := halfRun(t, wire, modeltest.Answer{Calls: begun}.Step(), modeltest.Answer{Text: "done"}.Step())
			want(t, out, reason.Completed)
			if !wiped(out) {
				t.Error("a whole call without arguments did not run")
			}
		})
		for name, h := range all {
			t.Run(wire.Name()+"/"+name+"/text", func(t *testing.T) {
				t.Parallel()
				answer := modeltest.Answer{Text: "half an answ", Finish: h.finish}.Step()
				out, server := halfRun(t, wire, answer, answer)
				want(t, out, h.want)
				if n := len(server.Requests()); n != h.requests {
					t.Errorf("%d requests, want %d", n, h.requests)
				}
				if h.want != reason.ProviderUnavailable && h.requests == 1 && out.Result().Output != "half an answ" {
					t.Errorf("the text so far is lost: %q", out.Result().Output)
				}
			})
			t.Run(wire.Name()+"/"+name+"/call", func(t *testing.T) {
				t.Parallel()
				answer := modeltest.Answer{Calls: begun, Finish: h.finish}.Step()
				steps := []modeltest.Step{answer, answer}
				ends := h.want
				if h.want == reason.OutputTruncated { // the model is told, and may write the call again
					steps, ends = []modeltest.Step{answer, modeltest.Answer{Text: "done"}.Step()}, reason.Completed
				}
				if wire == modeltest.Gemini && h.want == reason.OutputTruncated {
					t.Skip("its calls come whole: one that was cut at the limit is not sent")
				}
				out, _ := halfRun(t, wire, steps...)
				want(t, out, ends)
				if wiped(out) {
					t.Error("half a call has run")
				}
				for _, c := range out.Result().ToolCalls {
					if c.State != string(message.StateError) {
						t.Errorf("the call is %s: %+v", c.State, c)
					}
				}
			})
		}
	}
}

// halfRun runs an agent with a tool that needs no arguments and leaves a file.
func halfRun(t *testing.T, wire modeltest.Wire, steps ...modeltest.Step) (*Outcome, *modeltest.Server) {
	t.Helper()
	server := modeltest.Serve(t, wire, steps...)
	p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: m}\n  tools: [{name: wipe}]\n"+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: wipe}\nspec:\n  description: Removes everything.\n  parameters: {type: object, properties: {}}\n  source: {exec: {command: [sh, -c, \"echo wiped > wiped; echo {}\"]}}\n"+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {"+endpoints[wire].spec+", model: test, baseURL: \""+server.URL+
		"\", retry: {attempts: 2, maxDelay: 10ms}}\n"+allow, nil)
	out := p.run(t, func(o *RunOptions) { o.InPlace = true })
	return out, server
}

// wiped reports whether the tool has run.
func wiped(out *Outcome) bool {
	return slices.ContainsFunc(out.Result().ChangedFiles, func(c event.FileChange) bool { return c.Path == "wiped" })
}
