package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/model"
)

const parametersPath = "spec.parameters"

// parameter is one name of spec.parameters.
type parameter struct {
	name, wire string
	// check returns what is wrong with a value, or "".
	check func(v any) string
	// withTools parameters may only be sent together with tools.
	withTools bool
}

// parameters is sorted by name, which is also the order on the wire.
var parameters = []parameter{
	{name: "frequencyPenalty", wire: "frequency_penalty", check: number(-2, 2)},
	{name: "maxOutputTokens", wire: "max_completion_tokens", check: whole1},
	{name: "parallelToolCalls", wire: "parallel_tool_calls", check: boolean, withTools: true},
	{name: "presencePenalty", wire: "presence_penalty", check: number(-2, 2)},
	{name: "reasoningEffort", wire: "reasoning_effort", check: text},
	{name: "seed", wire: "seed", check: integer},
	{name: "serviceTier", wire: "service_tier", check: text},
	{name: "stop", wire: "stop", check: stops},
	{name: "temperature", wire: "temperature", check: number(0, 2)},
	{name: "topP", wire: "top_p", check: number(0, 1)},
	{name: "user", wire: "user", check: text},
	{name: "verbosity", wire: "verbosity", check: text},
}

// aliases are names people bring from elsewhere.
var aliases = map[string]string{
	"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
	"maxcompletiontokens": "maxOutputTokens", "maxoutputtoken": "maxOutputTokens",
}

// extra is the one door for members of the request that this list does not
// name: compatible servers have their own. It is sent as it is.
const extra = "extra"

// reserved are members of the request that the run itself decides.
var reserved = []string{"messages", "model", "stream", "stream_options", "tools", "tool_choice", "n", "functions"}

// CheckParameters returns what is wrong with spec.parameters of a Model.
func CheckParameters(raw json.RawMessage) []model.Problem {
	_, _, problems := encodeParameters(raw)
	return problems
}

// members are members of a request, in the order on the wire.
type members []struct {
	name  string
	value json.RawMessage
}

func (m *members) add(name string, value json.RawMessage) {
	var compact bytes.Buffer
	if json.Compact(&compact, value) == nil {
		value = compact.Bytes()
	}
	*m = append(*m, struct {
		name  string
		value json.RawMessage
	}{name, value})
}

// encode writes the members, each with a comma behind it.
func (m members) encode(b []byte) []byte {
	for _, p := range m {
		b = append(append(appendString(b, p.name), ':'), p.value...)
		b = append(b, ',')
	}
	return b
}

// outputLimits are the names servers have for the most an answer may hold.
var outputLimits = []string{"max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "n_predict"}

// capped returns the members with no limit of the output above most, under the
// name that the manifest uses for it: a server may not know another.
func (m members) capped(most int64) members {
	if most <= 0 {
		return m
	}
	out, known := make(members, 0, len(m)+1), false
	limit := json.RawMessage(strconv.FormatInt(most, 10))
	for _, p := range m {
		if slices.Contains(outputLimits, p.name) {
			known = true
			// A limit below 1 is some servers' word for none.
			if n, err := strconv.ParseInt(string(p.value), 10, 64); err != nil || n > most || n < 1 {
				p.value = limit
			}
		}
		out = append(out, p)
	}
	if !known {
		out.add(outputLimits[0], limit)
	}
	return out
}

// encodeParameters returns the members to send always and those to send only
// together with tools.
func encodeParameters(raw json.RawMessage) (always, withTools members, problems []model.Problem) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil, nil
	}
	bad := func(path, format string, args ...any) {
		problems = append(problems, model.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		bad(parametersPath, "must be an object")
		return nil, nil, problems
	}
	for _, p := range parameters {
		v, ok := given[p.name]
		if !ok {
			continue
		}
		delete(given, p.name)
		if wrong := p.check(decode(v)); wrong != "" {
			bad(parametersPath+"."+p.name, "%s, not %s", wrong, model.Quote(v))
			continue
		}
		if p.withTools {
			withTools.add(p.wire, v)
		} else {
			always.add(p.wire, v)
		}
	}
	if v, ok := given[extra]; ok {
		delete(given, extra)
		addExtra(&always, v, bad)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		bad(parametersPath+"."+name, "%s", unknown(name))
	}
	return always, withTools, problems
}

func addExtra(m *members, raw json.RawMessage, bad func(path, format string, args ...any)) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		bad(parametersPath+"."+extra, "must be an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		known := slices.ContainsFunc(parameters, func(p parameter) bool { return p.wire == name })
		switch {
		case slices.Contains(reserved, name):
			bad(parametersPath+"."+extra+"."+name, "is decided by the run")
		case known:
			bad(parametersPath+"."+extra+"."+name, "has a name of its own in spec.parameters")
		default:
			m.add(name, given[name])
		}
	}
}

func unknown(name string) string {
	plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	meant := aliases[strings.ToLower(name)]
	var names []string
	for _, p := range parameters {
		names = append(names, p.name)
		if strings.ToLower(p.name) == plain {
			meant = p.name
		}
	}
	if meant != "" {
		return fmt.Sprintf("openai has no parameter %s; did you mean %s?", name, meant)
	}
	return fmt.Sprintf("openai has no parameter %s; it has %s, and extra for members of the request that have no name here", name, strings.Join(names, ", "))
}

func decode(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil && err != io.EOF {
		return nil
	}
	return v
}

func number(low, high float64) func(any) string {
	return func(v any) string {
		if n, ok := v.(json.Number); ok {
			if f, err := n.Float64(); err == nil && f >= low && f <= high {
				return ""
			}
		}
		return fmt.Sprintf("must be a number from %g to %g", low, high)
	}
}

func integer(v any) string {
	if n, ok := v.(json.Number); ok {
		if _, err := n.Int64(); err == nil {
			return ""
		}
	}
	return "must be a whole number"
}

func whole1(v any) string {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil && i >= 1 {
			return ""
		}
	}
	return "must be a whole number of at least 1"
}

func boolean(v any) string {
	if _, ok := v.(bool); ok {
		return ""
	}
	return "must be true or false"
}

func text(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return ""
	}
	return "must be a text"
}

func stops(v any) string {
	const want = "must be a text or a list of at most 4 texts"
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 || len(list) > 4 || slices.ContainsFunc(list, func(v any) bool { return text(v) != "" }) {
		return want
	}
	return ""
}
