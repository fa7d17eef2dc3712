package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

func TestParametersHaveTheirPlaceInARequest(t *testing.T) {
	cases := map[string]struct{ model, params, want string }{
		"none":          {"claude-sonnet-4-5", ``, `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":32000,"tools"`},
		"null":          {"claude-sonnet-4-5", `null`, `"max_tokens":32000,"tools"`},
		"old model":     {"claude-3-haiku-20240307", `{}`, `"max_tokens":4096,"tools"`},
		"3.5":           {"claude-3-5-sonnet-latest", `{}`, `"max_tokens":8192,"tools"`},
		"newest model":  {"claude-opus-5", `{}`, `"max_tokens":32000,"tools"`},
		"foreign model": {"kimi-k2", `{}`, `"max_tokens":8192,"tools"`},
		"limit":         {"claude-3-haiku-20240307", `{"maxOutputTokens":100000}`, `"max_tokens":100000,"tools"`},
		"all": {
			"x", `{"maxOutputTokens":9,"serviceTier":"auto","stop":["a","b"],"temperature":0.5,"topK":5,"topP":0.5,"user":"u\"1","reasoningEffort":"max","thinking":"disabled","extra":{"inference_geo":"us","container":{"id":"c"}}}`,
			`"max_tokens":9,"service_tier":"auto","stop_sequences":["a","b"],"temperature":0.5,"top_k":5,"top_p":0.5,"metadata":{"user_id":"u\"1"},"container":{"id":"c"},"inference_geo":"us","output_config":{"effort":"max"},"tools"`,
		},
		"one stop":       {"x", `{"stop":"a"}`, `"stop_sequences":["a"],`},
		"budget":         {"x", `{"thinkingBudget":1024}`, `"max_tokens":8192,"tools"`},
		"large budget":   {"x", `{"thinkingBudget":8000}`, `"max_tokens":12096,"tools"`},
		"budget in":      {"x", `{"thinkingBudget":1024,"maxOutputTokens":2000,"temperature":1,"topP":0.95}`, `"max_tokens":2000,"temperature":1,"top_p":0.95,"tools"`},
		"adaptive":       {"x", `{"thinking":"adaptive","thinkingDisplay":"summarized"}`, `],"thinking":{"type":"adaptive","display":"summarized"}}`},
		"thinks":         {"x", `{"thinkingBudget":1024}`, `],"thinking":{"type":"enabled","budget_tokens":1024}}`},
		"one call":       {"x", `{"parallelToolCalls":false}`, `],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		"parallel calls": {"x", `{"parallelToolCalls":true}`, `}]}]}`},
	}
	for name, c := range cases {
		if problems := CheckParameters([]byte(c.params)); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		k, err := New(httpapi.Config{Name: "m", Model: c.model, Parameters: []byte(c.params)}, message.Prompt{Tools: []message.ToolSpec{{Name: "t"}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body := request(k)
		if !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %s, want %s", name, body, c.want)
		}
		if err := modeltest.Anthropic.Check(body); err != nil && name != "all" { // extra members are not checked
			t.Errorf("%s: the API would refuse it: %v", name, err)
		}
	}
}

func TestParametersThatAreWrong(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                                                  "spec.parameters: must be an object",
		`{"max_tokens":5}`:                                    "did you mean maxOutputTokens?",
		`{"budget_tokens":5}`:                                 "did you mean thinkingBudget?",
		`{"seed":1}`:                                          "anthropic has no parameter seed",
		`{"temperature":1.5}`:                                 "spec.parameters.temperature: must be a number from 0 to 1",
		`{"thinkingBudget":1023}`:                             "at least 1024",
		`{"thinkingBudget":"many"}`:                           "at least 1024",
		`{"thinking":"enabled"}`:                              "one of adaptive, disabled",
		`{"reasoningEffort":"extreme"}`:                       "one of low, medium, high, xhigh, max",
		`{"stop":[]}`:                                         "at most 64 texts",
		`{"structuredOutput":"yes"}`:                          "true or false",
		`{"extra":{"stream":false}}`:                          "is decided by the run",
		`{"extra":{"thinking":{}}}`:                           "has a name of its own",
		`{"extra":{"max_tokens":5}}`:                          "has a name of its own",
		`{"extra":{"output_config":{}}}`:                      "has a name of its own",
		`{"thinkingBudget":2000,"maxOutputTokens":2000}`:      "must be less than maxOutputTokens 2000",
		`{"thinkingBudget":2000,"thinking":"adaptive"}`:       "cannot stand beside thinking: adaptive",
		`{"thinkingBudget":2000,"temperature":0}`:             "must be 1 or left out beside thinking",
		`{"thinking":"adaptive","topK":5}`:                    "topK: must be left out beside thinking",
		`{"thinking":"adaptive","topP":0.5}`:                  "topP: must be at least 0.95",
		`{"thinkingDisplay":"omitted"}`:                       "wants thinking: adaptive or a thinkingBudget",
		`{"thinkingDisplay":"omitted","thinking":"disabled"}`: "wants thinking: adaptive or a thinkingBudget",
	} {
		problems := CheckParameters([]byte(in))
		if len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, want %q", in, problems, want)
		}
		if _, err := New(httpapi.Config{Name: "m", Model: "x", Parameters: []byte(in)}, message.Prompt{}); reason.Of(err) != reason.ModelError {
			t.Errorf("%s: New: %v", in, err)
		}
	}
	if problems := CheckParameters([]byte(`{"thinking":"disabled","temperature":0,"topK":5}`)); len(problems) > 0 {
		t.Errorf("without thinking all may be set: %v", problems)
	}
}

// A budget turns thinking on, and then the API wants a thought in front of the
// calls that are being answered. Another model's have none.
func TestCallsWithoutAThoughtAreAnsweredWithoutThinking(t *testing.T) {
	call := tool("c1", "bash", "{}", &message.ToolResult{Text: "ok"})
	const metadata = `{"blocks":[{"thinking":2,"signature":"s"}]}`
	for name, c := range map[string]struct {
		params   string
		messages []*message.Message
		want     bool
	}{
		"thought":        {`{"thinkingBudget":1024}`, []*message.Message{assistant(thinks("hm", metadata), call)}, true},
		"none":           {`{"thinkingBudget":1024}`, []*message.Message{assistant(call)}, false},
		"changed":        {`{"thinkingBudget":1024}`, []*message.Message{assistant(thinks("h*m", metadata), call)}, false},
		"behind a text":  {`{"thinkingBudget":1024}`, []*message.Message{assistant(thinks("hm", `{"blocks":[{"text":3},{"thinking":2,"signature":"s"}]}`), say("one"), call)}, false},
		"asked for anew": {`{"thinkingBudget":1024}`, []*message.Message{assistant(call), user(say("hi")), assistant(say("ok")), user(say("hi"))}, true},
		"no calls":       {`{"thinkingBudget":1024}`, []*message.Message{user(say("hi")), assistant(say("ok"))}, true},
		"adaptive":       {`{"thinking":"adaptive"}`, []*message.Message{assistant(call)}, true},
	} {
		k, err := New(httpapi.Config{Name: self.Name, Model: self.Model, Parameters: []byte(c.params)}, message.Prompt{Tools: []message.ToolSpec{{Name: "bash"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(request(appendAll(t, k, c.messages))), `"thinking":{"type"`); got != c.want {
			t.Errorf("%s: thinking is on: %v, want %v", name, got, c.want)
		}
	}
}

func TestAsideKeepsToTheSmallerLimit(t *testing.T) {
	for parameters, want := range map[string]string{
		`{}`:                       `"max_tokens":2000,"system"`,
		`{"maxOutputTokens":50}`:   `"max_tokens":50,"system"`,
		`{"maxOutputTokens":5000}`: `"max_tokens":2000,"system"`,
		`{"thinkingBudget":1500}`:  `],"thinking":{"type":"enabled","budget_tokens":1500}}`,
		// No room is left to think in.
		`{"thinkingBudget":2000}`: `}]}]}`,
		`{"reasoningEffort":"low","thinking":"adaptive","structuredOutput":true}`: `"max_tokens":2000,"output_config":{"effort":"low"},"system"`,
	} {
		s := modeltest.Serve(t, modeltest.Anthropic, modeltest.Answer{Text: "ok"}.Step(), modeltest.Answer{Text: "ok"}.Step())
		c, err := New(httpapi.Config{Name: "m", Model: "test-model", BaseURL: s.URL, Parameters: []byte(parameters)}, message.Prompt{System: "s", Output: json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, most := range []int64{2000, 0} {
			if _, err := c.Next(t.Context(), message.Request{Aside: &message.Aside{System: "s", Text: "x", MaxOutputTokens: most}}, quiet); err != nil {
				t.Fatal(err)
			}
		}
		if body := string(s.Requests()[0].Body); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", parameters, body, want)
		}
		if body := string(s.Requests()[1].Body); !strings.HasPrefix(body, string(c.given.begin("test-model", c.given.most("test-model", 0), nil))) {
			t.Errorf("%s: without a limit of its own an aside has the model's: %s", parameters, body)
		}
	}
}

func TestSilentRequestsKeepTheToolsDeclared(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Anthropic, modeltest.Answer{Text: "ok"}.Step(), modeltest.Answer{Text: "ok"}.Step())
	for i, tools := range [][]message.ToolSpec{{{Name: "t"}}, nil} {
		c, err := New(httpapi.Config{Name: "m", Model: "test-model", BaseURL: s.URL}, message.Prompt{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Next(t.Context(), message.Request{NoTools: true}, quiet); err != nil {
			t.Fatal(err)
		}
		body := string(s.Requests()[i].Body)
		if strings.Contains(body, `"tools"`) != (i == 0) || strings.Contains(body, `"tool_choice":{"type":"none"}`) != (i == 0) {
			t.Errorf("%d tools: %s", len(tools), body)
		}
	}
}
