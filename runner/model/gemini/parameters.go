package gemini

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/model"
)

const (
	parametersPath = "spec.parameters"
	configMember   = "generationConfig"
	limitMember    = "maxOutputTokens"
)

// parameters are members of generationConfig; those without a name on the wire
// have another form there.
var parameters = model.ParameterTable{
	Provider: "gemini",
	Parameters: []model.Parameter{
		{Name: "frequencyPenalty", Wire: "frequencyPenalty", Check: model.NumberFrom(-2, 2)},
		{Name: "includeThoughts", Check: model.Boolean},
		{Name: "maxOutputTokens", Wire: limitMember, Check: model.PositiveNumber},
		{Name: "presencePenalty", Wire: "presencePenalty", Check: model.NumberFrom(-2, 2)},
		{Name: "reasoningEffort", Check: model.OneOf("minimal", "low", "medium", "high")},
		{Name: "seed", Wire: "seed", Check: model.WholeNumber},
		{Name: "stop", Check: model.StringList(5)},
		{Name: "structuredOutput", Check: model.Boolean},
		{Name: "temperature", Wire: "temperature", Check: model.NumberFrom(0, 2)},
		{Name: "thinkingBudget", Check: budget},
		{Name: "topK", Wire: "topK", Check: model.PositiveNumber},
		{Name: "topP", Wire: "topP", Check: model.NumberFrom(0, 1)},
	},
	Aliases: map[string]string{
		"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "stopsequences": "stop", "stop_sequences": "stop",
		"thinkinglevel": "reasoningEffort", "thinking_level": "reasoningEffort", "effort": "reasoningEffort", "thinking": "thinkingBudget",
	},
	Reserved: []string{
		"contents", "model", "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config", "generation_config",
	},
}

// decided are members of generationConfig that the run itself decides.
var decided = []string{"candidateCount", "responseJsonSchema", "responseMimeType", "responseModalities", "responseSchema"}

// budget is a number of tokens, 0 for none, or -1 for as many as the model wants.
func budget(v any) string {
	if model.WholeNumber(v) != "" || model.NumberFrom(-1, 1<<20)(v) != "" {
		return "must be a number of tokens, 0 for none, or -1 to leave it to the model"
	}
	return ""
}

// CheckParameters returns what is wrong with spec.parameters of a Model.
func CheckParameters(raw json.RawMessage) []model.Problem {
	_, problems := read(raw)
	return problems
}

// settings are spec.parameters as a request carries them.
type settings struct {
	// config are members of generationConfig, extra those beside it.
	config, extra model.Members
	// thoughts and budget as they are written, nil when they are not given.
	thoughts, budget json.RawMessage
	// effort is how much the model may think, "" for its own measure.
	effort string
	// structured: whether the API accepts a schema; nil decides by the address.
	structured *bool
}

// read reads spec.parameters.
func read(raw json.RawMessage) (settings, []model.Problem) {
	given := parameters.Read(raw)
	s := settings{thoughts: given.Values["includeThoughts"], budget: given.Values["thinkingBudget"]}
	problem := func(path, message string) {
		given.Problems = append(given.Problems, model.Problem{Path: parametersPath + "." + path, Message: message})
	}
	for _, m := range given.Always {
		switch {
		case m.Name == configMember:
			s.more(m.Value, func(name, message string) { problem("extra."+configMember+name, message) })
		case inTable(m.Name):
			s.config = append(s.config, m)
		default:
			s.extra = append(s.extra, m)
		}
	}
	if stop := given.Values["stop"]; stop != nil {
		s.config = append(s.config, model.Member{Name: "stopSequences", Value: list(stop)})
	}
	s.effort = decode[string](given.Values["reasoningEffort"])
	if s.effort != "" && s.budget != nil {
		problem("reasoningEffort", "cannot stand beside thinkingBudget: both say how much the model thinks")
	}
	if v := given.Values["structuredOutput"]; v != nil {
		s.structured = new(decode[bool](v))
	}
	return s, given.Problems
}

// more adds members of generationConfig that have no name in spec.parameters.
func (s *settings) more(raw json.RawMessage, problem func(name, message string)) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		problem("", "must be an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch {
		case inTable(name) || name == "stopSequences" || name == "thinkingConfig":
			problem("."+name, "has a name of its own in spec.parameters")
		case slices.Contains(decided, name):
			problem("."+name, "is decided by the run")
		default:
			s.config = append(s.config, model.Member{Name: name, Value: members[name]})
		}
	}
}

func inTable(wire string) bool {
	return slices.ContainsFunc(parameters.Parameters, func(p model.Parameter) bool { return p.Wire == wire })
}

// list is a text, or a list of texts, as a list.
func list(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte{'['}) {
		return raw
	}
	return slices.Concat([]byte{'['}, raw, []byte{']'})
}

// decode reads a value that was checked.
func decode[T any](raw json.RawMessage) (v T) {
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		return *new(T)
	}
	return v
}

// efforts are tokens to think with, as the API itself translates the levels for
// models that count tokens.
var efforts = []struct {
	effort string
	tokens string
}{{"minimal", "1024"}, {"low", "1024"}, {"medium", "8192"}, {"high", "24576"}}

// generationConfig is that of the conversation.
func (s *settings) generationConfig(name string) model.Members {
	config := slices.Clip(s.config)
	var thinking model.Members
	if s.thoughts != nil {
		thinking = append(thinking, model.Member{Name: "includeThoughts", Value: s.thoughts})
	}
	if s.budget != nil {
		thinking = append(thinking, model.Member{Name: "thinkingBudget", Value: s.budget})
	}
	if s.effort != "" {
		thinking = append(thinking, thinkingOf(name, s.effort))
	}
	return withThinking(config, thinking)
}

// thinkingOf is a level where the model knows levels, and else a budget.
func thinkingOf(name, effort string) model.Member {
	if generation(name) >= 3 {
		return model.Member{Name: "thinkingLevel", Value: json.RawMessage(`"` + strings.ToUpper(effort) + `"`)}
	}
	m := model.Member{Name: "thinkingBudget"}
	for _, e := range efforts {
		if e.effort == effort {
			m.Value = json.RawMessage(e.tokens)
		}
	}
	return m
}

func withThinking(config, thinking model.Members) model.Members {
	if len(thinking) == 0 {
		return config
	}
	value := thinking.Encode([]byte{'{'})
	value[len(value)-1] = '}' // for the comma behind the last member
	return append(config, model.Member{Name: "thinkingConfig", Value: value})
}

// asideThought is how many tokens a model may think about a question beside the
// conversation: the least that every model of the API takes which counts them.
const asideThought = 512

// asideConfig is that of a question beside the conversation. Thoughts count as
// output: under a limit that is meant for the answer the model could think it
// away, and so may think little.
func (s *settings) asideConfig(name string, most int64) model.Members {
	if most <= 0 {
		return s.generationConfig(name)
	}
	config := s.config.Capped(most, limitMember)
	switch {
	case generation(name) >= 3:
		effort := "low"
		if s.effort == "minimal" {
			effort = s.effort
		}
		return withThinking(config, model.Members{thinkingOf(name, effort)})
	case strings.HasPrefix(strings.TrimPrefix(name, "models/"), "gemini-2.5"):
		tokens := asideThought
		if own := decode[int](s.budget); s.budget != nil && own >= 0 {
			tokens = min(tokens, own)
		}
		return withThinking(config, model.Members{{Name: "thinkingBudget", Value: json.RawMessage(strconv.Itoa(tokens))}})
	}
	return config
}
