package model

import (
	"strings"
	"testing"
)

var parameters = ParameterTable{
	Provider: "test",
	Parameters: []Parameter{
		{Name: "effort", Check: OneOf("low", "high")},
		{Name: "maxOutputTokens", Wire: "max", Check: PositiveNumber},
		{Name: "parallel", Wire: "parallel", Check: Boolean, WithTools: true},
		{Name: "stop", Wire: "stop", Check: StringList(2)},
		{Name: "temperature", Wire: "temperature", Check: NumberFrom(0, 2)},
	},
	Aliases: map[string]string{"max_tokens": "maxOutputTokens"}, Reserved: []string{"messages"},
}

func TestParametersBecomeMembers(t *testing.T) {
	g := parameters.Read([]byte(`{"temperature": 0, "maxOutputTokens":10, "parallel":false, "effort":"low", "stop":["a", "b"], "extra":{"z":[1, 2], "a":null}}`))
	if len(g.Problems) > 0 {
		t.Fatal(g.Problems)
	}
	if got := string(g.Always.Encode(nil)); got != `"max":10,"stop":["a","b"],"temperature":0,"a":null,"z":[1,2],` {
		t.Errorf("always: %s", got)
	}
	if got := string(g.WithTools.Encode(nil)); got != `"parallel":false,` {
		t.Errorf("with tools: %s", got)
	}
	if len(g.Values) != 1 || string(g.Values["effort"]) != `"low"` {
		t.Errorf("values: %s", g.Values)
	}
	for _, none := range []string{"", " ", "null", "{}"} {
		if g := parameters.Read([]byte(none)); len(g.Problems)+len(g.Always) > 0 {
			t.Errorf("%q: %+v", none, g)
		}
	}
}

func TestEveryMistakeIsTold(t *testing.T) {
	for in, says := range map[string]string{
		`[]`:                          "spec.parameters: must be an object",
		`{"temperature":"hot"}`:       `spec.parameters.temperature: must be a number from 0 to 2, not "hot"`,
		`{"temperature":2.5}`:         "from 0 to 2, not 2.5",
		`{"maxOutputTokens":0}`:       "whole number of at least 1",
		`{"maxOutputTokens":1.5}`:     "whole number of at least 1",
		`{"parallel":1}`:              "true or false",
		`{"stop":["a","b","c"]}`:      "at most 2 texts",
		`{"stop":[]}`:                 "at most 2 texts",
		`{"effort":"middle"}`:         "must be one of low, high",
		`{"max_tokens":1}`:            "test has no parameter max_tokens; did you mean maxOutputTokens?",
		`{"Temperature":1}`:           "did you mean temperature?",
		`{"foo":1}`:                   "it has effort, maxOutputTokens, parallel, stop, temperature, and extra",
		`{"extra":1}`:                 "spec.parameters.extra: must be an object",
		`{"extra":{"messages":[]}}`:   "is decided by the run",
		`{"extra":{"temperature":1}}`: "has a name of its own",
	} {
		g := parameters.Read([]byte(in))
		if len(g.Problems) != 1 || !strings.Contains(g.Problems[0].String(), says) {
			t.Errorf("%s: %v, want %q", in, g.Problems, says)
		}
	}
	if g := parameters.Read([]byte(`{"foo":1,"stop":1,"temperature":9}`)); len(g.Problems) != 3 {
		t.Errorf("three mistakes: %v", g.Problems)
	}
}

func TestOutputIsCapped(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: `"max":100,`, `{"maxOutputTokens":8}`: `"max":8,`, `{"maxOutputTokens":800}`: `"max":100,`,
		`{"extra":{"max_old":-1}}`: `"max_old":100,`, `{"extra":{"max_old":"x"}}`: `"max_old":100,`,
	} {
		if got := string(parameters.Read([]byte(in)).Always.Capped(100, "max", "max_old").Encode(nil)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := parameters.Read([]byte(`{"maxOutputTokens":800}`)).Always.Capped(0, "max"); string(got.Encode(nil)) != `"max":800,` {
		t.Errorf("no cap: %s", got.Encode(nil))
	}
}
