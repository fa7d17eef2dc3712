package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// table is what the messages API takes.
var table = model.ParameterTable{
	Provider: "anthropic",
	Parameters: []model.Parameter{
		{Name: "maxOutputTokens", Wire: maxTokens, Check: model.PositiveNumber},
		{Name: "parallelToolCalls", Check: model.Boolean},
		{Name: "reasoningEffort", Wire: outputConfig, Check: model.OneOf("low", "medium", "high", "xhigh", "max")},
		{Name: "serviceTier", Wire: "service_tier", Check: model.OneOf("auto", "standard_only")},
		{Name: "stop", Wire: stopSequences, Check: model.StringList(64)},
		{Name: "structuredOutput", Check: model.Boolean},
		{Name: "temperature", Wire: "temperature", Check: model.NumberFrom(0, 1)},
		{Name: "thinking", Wire: thinking, Check: model.OneOf("adaptive", "disabled")},
		{Name: "thinkingBudget", Check: budget},
		{Name: "thinkingDisplay", Check: model.OneOf("summarized", "omitted")},
		{Name: "topK", Wire: "top_k", Check: model.PositiveNumber},
		{Name: "topP", Wire: "top_p", Check: model.NumberFrom(0, 1)},
		{Name: "user", Wire: metadata, Check: model.NonEmptyString},
	},
	Aliases: map[string]string{
		"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "maxoutputtoken": "maxOutputTokens", "stop_sequences": "stop",
		"stopsequences": "stop", "effort": "reasoningEffort", "budget_tokens": "thinkingBudget", "budgettokens": "thinkingBudget", "metadata": "user",
	},
	Reserved: []string{"messages", "model", "stream", "system", "tools", "tool_choice", "cache_control"},
}

// Members of a request that are made of one parameter or of several.
const (
	maxTokens     = "max_tokens"
	metadata      = "metadata"
	outputConfig  = "output_config"
	stopSequences = "stop_sequences"
	thinking      = "thinking"
)

const (
	// leastBudget is the least the API takes.
	leastBudget = 1024
	// leastAnswer is what a budget leaves to the answer itself.
	leastAnswer = 4096
	// safeOutput is accepted by the API and all that imitate it.
	safeOutput = 8192
)

// outputs are the output limits of models without the parameter. The API
// requires a limit in every request, and refuses one that a model cannot reach.
// Later families write more than earlier ones, so the newest line is used for
// all future ones.
var outputs = []struct {
	prefix string
	tokens int64
}{
	{"claude-3-5-", 8192},
	{"claude-3-7-", 32000},
	{"claude-3-", 4096},
	{"claude-2", 4096},
	{"claude-instant", 4096},
	{"claude-", 32000},
}

// formless are the models that cannot be held to a schema.
var formless = []string{
	"claude-2", "claude-instant", "claude-3-", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2025", "claude-sonnet-4-0", "claude-sonnet-4-2025",
}

func budget(v any) string {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil && i >= leastBudget {
			return ""
		}
	}
	return fmt.Sprintf("must be a whole number of at least %d", leastBudget)
}

// CheckParameters returns what is wrong with spec.parameters of a Model.
func CheckParameters(raw json.RawMessage) []model.Problem {
	_, problems := read(raw)
	return problems
}

// OutputLimit is the most tokens that an answer of a model may have. The API
// requires a limit in every request, whether the parameter is set or not.
func OutputLimit(name string, parameters json.RawMessage) int64 {
	given, _ := read(parameters) // their errors are reported elsewhere
	return given.most(name, 0)
}

// settings are spec.parameters as the requests need them.
type settings struct {
	// always has the members of a request that correspond to one parameter each.
	always model.Members
	// limit of the output, 0 for the model's own.
	limit int64
	// effort and thinking as they are in a request; nil when they are not.
	effort, thinking json.RawMessage
	budget           int64
	// oneCall forbids more than one call in an answer.
	oneCall bool
	// structured is the value of structuredOutput; nil when it is not set.
	structured *bool
}

// read reads spec.parameters.
func read(raw json.RawMessage) (settings, []model.Problem) {
	given := table.Read(raw)
	var s settings
	for _, m := range given.Always {
		switch m.Name {
		case maxTokens:
			s.limit, _ = strconv.ParseInt(string(m.Value), 10, 64) // it was checked
			continue
		case outputConfig:
			s.effort = m.Value
			continue
		case thinking:
			s.thinking = m.Value
			continue
		case stopSequences:
			if m.Value[0] == '"' {
				m.Value = fmt.Appendf(nil, "[%s]", m.Value)
			}
		case metadata:
			m.Value = fmt.Appendf(nil, `{"user_id":%s}`, m.Value)
		}
		s.always = append(s.always, m)
	}
	// What does not decode was found to be wrong above.
	_ = json.Unmarshal(given.Values["thinkingBudget"], &s.budget)
	_ = json.Unmarshal(given.Values["structuredOutput"], &s.structured)
	s.oneCall = string(bytes.TrimSpace(given.Values["parallelToolCalls"])) == "false"
	problems := given.Problems
	if len(problems) == 0 {
		problems = s.agree(given)
	}
	s.think(given.Values["thinkingDisplay"])
	return s, problems
}

// agree returns which parameters the API refuses in combination.
func (s *settings) agree(given model.GivenParameters) (problems []model.Problem) {
	bad := func(name, format string, args ...any) {
		problems = append(problems, model.Problem{Path: "spec.parameters." + name, Message: fmt.Sprintf(format, args...)})
	}
	word, _ := strconv.Unquote(string(s.thinking)) // "" without one
	if s.budget > 0 && word != "" {
		bad("thinkingBudget", "cannot stand beside thinking: %s; the budget alone turns thinking on", word)
	}
	if s.limit > 0 && s.budget >= s.limit {
		bad("thinkingBudget", "must be less than maxOutputTokens %d, of which it is a part", s.limit)
	}
	thinks := s.budget > 0 || word == "adaptive"
	if len(given.Values["thinkingDisplay"]) > 0 && !thinks {
		bad("thinkingDisplay", "wants thinking: adaptive or a thinkingBudget beside it")
	}
	for _, m := range s.always {
		f, err := strconv.ParseFloat(string(m.Value), 64)
		switch {
		case !thinks || err != nil:
		case m.Name == "temperature" && f != 1:
			bad("temperature", "must be 1 or left out beside thinking")
		case m.Name == "top_k":
			bad("topK", "must be left out beside thinking")
		case m.Name == "top_p" && f < 0.95:
			bad("topP", "must be at least 0.95 beside thinking")
		}
	}
	return problems
}

// think makes the member of the request for the parameters about thinking.
func (s *settings) think(display json.RawMessage) {
	var b []byte
	switch {
	case s.budget > 0:
		b = fmt.Appendf(nil, `{"type":"enabled","budget_tokens":%d`, s.budget)
	case s.thinking != nil:
		b = fmt.Appendf(nil, `{"type":%s`, s.thinking)
	default:
		return
	}
	if len(display) > 0 {
		b = fmt.Appendf(b, `,"display":%s`, bytes.TrimSpace(display))
	}
	s.thinking = append(b, '}')
}

// formats reports whether the API may constrain an answer to a schema. An
// endpoint that is not the provider's own may not support it.
func (s *settings) formats(name string, official bool) bool {
	if s.structured != nil {
		return *s.structured
	}
	return official && !slices.ContainsFunc(formless, func(old string) bool { return strings.HasPrefix(name, old) })
}

// most is how much an answer may hold. Further bounds it, 0 does not.
func (s *settings) most(name string, further int64) int64 {
	limit := s.limit
	if limit == 0 {
		// A budget is a part of the limit: more of it than a model can write is
		// refused, so the limit grows only where no answer would be left.
		limit = max(outputOf(name), s.budget+leastAnswer)
	}
	if further > 0 {
		limit = min(limit, further)
	}
	return limit
}

// thinks returns what a request says about thinking, nil for nothing. An answer
// without room to think is requested without it. So is one that continues calls
// without a thought in front of them, as another model's are: where a budget
// turns thinking on, the API refuses those.
func (s *settings) thinks(limit int64, unthought bool) json.RawMessage {
	if s.budget > 0 && (unthought || s.budget >= limit) {
		return nil
	}
	return s.thinking
}

// begin writes a request up to what is asked, with a limit of the output; format
// is a schema for the answer, or nil.
func (s *settings) begin(name string, limit int64, format json.RawMessage) []byte {
	b := jsonpass.AppendString([]byte(`{"model":`), name)
	b = fmt.Appendf(b, `,"stream":true,"max_tokens":%d,`, limit)
	b = s.always.Encode(b)
	if s.effort == nil && format == nil {
		return b
	}
	b = append(b, `"output_config":{`...)
	if s.effort != nil {
		b = append(append(b, `"effort":`...), s.effort...)
	}
	if format != nil {
		b = append(jsonpass.Open(b), `"format":{"type":"json_schema","schema":`...)
		b = append(append(b, format...), '}')
	}
	return append(b, `},`...)
}

func outputOf(name string) int64 {
	for _, o := range outputs {
		if strings.HasPrefix(name, o.prefix) {
			return o.tokens
		}
	}
	return safeOutput
}
