package gemini

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func TestCheckParameters(t *testing.T) {
	if p := CheckParameters([]byte(`{"temperature":0.5,"topP":1,"topK":40,"maxOutputTokens":8000,"reasoningEffort":"low","seed":-1,"stop":["a","b"],"presencePenalty":-2,"frequencyPenalty":2,"includeThoughts":false,"structuredOutput":true,"extra":{"safetySettings":[],"generationConfig":{"mediaResolution":"x"}}}`)); len(p) > 0 {
		t.Errorf("good parameters: %v", p)
	}
	for _, none := range []string{"", "null", "{}", " ", `{"thinkingBudget":-1}`, `{"thinkingBudget":0}`} {
		if p := CheckParameters([]byte(none)); len(p) > 0 {
			t.Errorf("%q: %v", none, p)
		}
	}
	cases := map[string]struct{ path, says string }{
		`[]`:                                        {"spec.parameters", "object"},
		`{"temperature":3}`:                         {"spec.parameters.temperature", "from 0 to 2"},
		`{"topK":0}`:                                {"spec.parameters.topK", "at least 1"},
		`{"topP":"1"}`:                              {"spec.parameters.topP", "from 0 to 1"},
		`{"maxOutputTokens":1.5}`:                   {"spec.parameters.maxOutputTokens", "whole number"},
		`{"reasoningEffort":"xhigh"}`:               {"spec.parameters.reasoningEffort", "minimal, low, medium, high"},
		`{"thinkingBudget":-2}`:                     {"spec.parameters.thinkingBudget", "-1 to leave it to the model"},
		`{"thinkingBudget":1.5}`:                    {"spec.parameters.thinkingBudget", "number of tokens"},
		`{"includeThoughts":"yes"}`:                 {"spec.parameters.includeThoughts", "true or false"},
		`{"structuredOutput":1}`:                    {"spec.parameters.structuredOutput", "true or false"},
		`{"stop":[1]}`:                              {"spec.parameters.stop", "at most 5"},
		`{"seed":9.5}`:                              {"spec.parameters.seed", "whole number"},
		`{"max_tokens":5}`:                          {"spec.parameters.max_tokens", "did you mean maxOutputTokens?"},
		`{"top_k":5}`:                               {"spec.parameters.top_k", "did you mean topK?"},
		`{"thinkingLevel":"low"}`:                   {"spec.parameters.thinkingLevel", "did you mean reasoningEffort?"},
		`{"parallelToolCalls":true}`:                {"spec.parameters.parallelToolCalls", "it has frequencyPenalty"},
		`{"extra":1}`:                               {"spec.parameters.extra", "object"},
		`{"extra":{"contents":[]}}`:                 {"spec.parameters.extra.contents", "decided by the run"},
		`{"extra":{"tool_config":{}}}`:              {"spec.parameters.extra.tool_config", "decided by the run"},
		`{"extra":{"topK":1}}`:                      {"spec.parameters.extra.topK", "name of its own"},
		`{"extra":{"generationConfig":1}}`:          {"spec.parameters.extra.generationConfig", "object"},
		`{"extra":{"generationConfig":{"topK":1}}}`: {"spec.parameters.extra.generationConfig.topK", "name of its own"},
		`{"extra":{"generationConfig":{"thinkingConfig":{}}}}`:                    {"spec.parameters.extra.generationConfig.thinkingConfig", "name of its own"},
		`{"extra":{"generationConfig":{"responseMimeType":"text/x"}}}`:            {"spec.parameters.extra.generationConfig.responseMimeType", "decided by the run"},
		`{"reasoningEffort":"low","thinkingBudget":5}`:                            {"spec.parameters.reasoningEffort", "thinkingBudget"},
		`{"temperature":1,"extra":{"generationConfig":{"responseModalities":1}}}`: {"spec.parameters.extra.generationConfig.responseModalities", "decided by the run"},
	}
	for in, c := range cases {
		p := CheckParameters([]byte(in))
		if len(p) != 1 || p[0].Path != c.path || !strings.Contains(p[0].Message, c.says) {
			t.Errorf("%s: %v, want %s: %s", in, p, c.path, c.says)
		}
	}
	if p := CheckParameters([]byte(`{"temperature":9,"topP":9,"a":1,"extra":{"generationConfig":{"topK":1,"candidateCount":2}}}`)); len(p) != 5 {
		t.Errorf("all mistakes at once: %v", p)
	}
}

func TestEffortIsALevelOrABudget(t *testing.T) {
	for _, c := range []struct{ model, parameters, want string }{
		{strict, `{"reasoningEffort":"minimal"}`, `{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`},
		{strict, `{"reasoningEffort":"high","includeThoughts":true}`, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`},
		{strict, `{"thinkingBudget":100}`, `{"thinkingConfig":{"thinkingBudget":100}}`},
		{plain, `{"reasoningEffort":"minimal"}`, `{"thinkingConfig":{"thinkingBudget":1024}}`},
		{plain, `{"reasoningEffort":"low"}`, `{"thinkingConfig":{"thinkingBudget":1024}}`},
		{plain, `{"reasoningEffort":"medium"}`, `{"thinkingConfig":{"thinkingBudget":8192}}`},
		{plain, `{"reasoningEffort":"high"}`, `{"thinkingConfig":{"thinkingBudget":24576}}`},
		{plain, `{"thinkingBudget":-1}`, `{"thinkingConfig":{"thinkingBudget":-1}}`},
		{plain, `{}`, ``},
	} {
		s, problems := read([]byte(c.parameters))
		if len(problems) > 0 {
			t.Fatalf("%s: %v", c.parameters, problems)
		}
		if got := members(s.generationConfig(c.model).Encode(nil)); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.model, c.parameters, got, c.want)
		}
	}
}

// members are encoded members as an object, "" for none.
func members(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return "{" + strings.TrimSuffix(string(b), ",") + "}"
}

func TestAnAsideKeepsToItsLimitAndThinksLittle(t *testing.T) {
	for _, c := range []struct {
		reason, model, parameters string
		most                      int64
		want                      string
	}{
		{"levels", strict, `{"reasoningEffort":"high","temperature":0}`, 100, `{"temperature":0,"maxOutputTokens":100,"thinkingConfig":{"thinkingLevel":"LOW"}}`},
		{"never more than before", strict, `{"reasoningEffort":"minimal"}`, 100, `{"maxOutputTokens":100,"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`},
		{"budgets", plain, `{"thinkingBudget":20000,"maxOutputTokens":50}`, 100, `{"maxOutputTokens":50,"thinkingConfig":{"thinkingBudget":512}}`},
		{"no thought", plain, `{"thinkingBudget":0,"maxOutputTokens":500}`, 100, `{"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":0}}`},
		{"as it likes", plain, `{"thinkingBudget":-1}`, 100, `{"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":512}}`},
		{"a model that may not think at all", "gemini-2.0-flash", `{}`, 100, `{"maxOutputTokens":100}`},
		{"without a limit it is as the rest", plain, `{"thinkingBudget":20000}`, 0, `{"thinkingConfig":{"thinkingBudget":20000}}`},
	} {
		s, problems := read([]byte(c.parameters))
		if len(problems) > 0 {
			t.Fatalf("%s: %v", c.parameters, problems)
		}
		before := members(s.generationConfig(c.model).Encode(nil))
		if got := members(s.asideConfig(c.model, c.most).Encode(nil)); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
		if after := members(s.generationConfig(c.model).Encode(nil)); after != before {
			t.Errorf("%s: the conversation's own became %s", c.reason, after)
		}
	}
}

func TestSchemaIsSentWhereTheAPIHoldsToIt(t *testing.T) {
	const schema = `{"type": "object", "properties": {"a": {"type": "string"}}}`
	tools := []message.ToolSpec{{Name: "bash"}}
	for _, c := range []struct {
		reason, base, model, parameters, schema string
		tools                                   []message.ToolSpec
		want                                    bool
	}{
		{"at its own address", "", plain, `{}`, schema, nil, true},
		{"another server may not know it", "http://127.0.0.1:1", plain, `{}`, schema, nil, false},
		{"unless the manifest says so", "http://127.0.0.1:1", plain, `{"structuredOutput":true}`, schema, nil, true},
		{"or says no", "", plain, `{"structuredOutput":false}`, schema, nil, false},
		{"the second generation cannot while it has tools", "", plain, `{}`, schema, tools, false},
		{"the third can", "", strict, `{}`, schema, tools, true},
		{"no schema", "", strict, `{}`, "", nil, false},
		{"a schema with a word that the API passes over", "", strict, `{}`, `{"type":"string","pattern":"a+"}`, nil, false},
	} {
		talk, err := New(httpapi.Config{Name: "m", Model: c.model, BaseURL: c.base, Parameters: []byte(c.parameters)}, message.Prompt{Tools: c.tools, Output: []byte(c.schema)})
		if err != nil {
			t.Fatal(err)
		}
		defer talk.Close()
		sent := strings.Contains(request(talk, talk.end), `"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}`)
		told := strings.Contains(request(talk, talk.end), "satisfies this JSON Schema")
		if sent != c.want || told != (c.schema != "" && !c.want) {
			t.Errorf("%s: sent %v, told in words %v", c.reason, sent, told)
		}
		aside := talk.question(&message.Aside{Text: "x"})
		if strings.Contains(string(aside.b), "response") {
			t.Errorf("%s: a question beside the conversation has its schema: %s", c.reason, aside.b)
		}
	}
}
