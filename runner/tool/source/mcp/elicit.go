package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/plugins/host"
)

// Bounds of what a server asks at once.
const (
	maxQuestion = 4 << 10
	maxFields   = 16
	maxOptions  = 16
	maxOption   = 200
)

// Answers to a question of a server.
const (
	accepted  = "accept"
	declined  = "decline"
	cancelled = "cancel"
)

// elicit asks a person what a server wants to know, one question for each field. It
// belongs to the call in whose context it comes or, where the server asks by itself, to
// the only call that runs.
func (l *link) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	call, _ := ctx.Value(callKey{}).(string)
	if call == "" {
		call = l.only()
	}
	if l.person == nil || call == "" {
		return &mcp.ElicitResult{Action: cancelled}, nil
	}
	p := req.Params
	if p.Mode == "url" || p.URL != "" {
		return l.visit(ctx, call, p)
	}
	fields, err := fieldsOf(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	for i, f := range fields {
		value, err := l.field(ctx, call, f, question(p.Message, f, i == 0))
		if err != nil {
			return &mcp.ElicitResult{Action: refusal(ctx)}, nil //nolint:nilerr // a person who does not answer is a refusal
		}
		if value != nil {
			content[f.name] = value
		}
	}
	if len(fields) == 0 { // only consent is asked for
		said, err := l.person(ctx, call, host.Question{Text: question(p.Message, field{}, true), Options: []string{"yes", "no"}})
		if err != nil || said != "yes" {
			return &mcp.ElicitResult{Action: refusal(ctx)}, nil //nolint:nilerr // a person who does not answer is a refusal
		}
	}
	return &mcp.ElicitResult{Action: accepted, Content: content}, nil
}

// refusal is the answer for a person who does not answer, or is not there.
func refusal(ctx context.Context) string {
	if ctx.Err() != nil {
		return cancelled
	}
	return declined
}

// visit asks a person to open a page. The page is never opened for them, and its host is
// named.
func (l *link) visit(ctx context.Context, call string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	at, err := url.Parse(p.URL)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return &mcp.ElicitResult{Action: declined}, nil //nolint:nilerr // a page that cannot be opened is declined
	}
	text := cut(cleanLines(p.Message), maxQuestion/2) + "\nThe server asks to open this page of " + at.Host + ": " + cut(clean(p.URL), maxQuestion/4)
	said, err := l.person(ctx, call, host.Question{Text: text, Options: []string{"opened", "no"}})
	if err != nil || said != "opened" {
		return &mcp.ElicitResult{Action: refusal(ctx)}, nil //nolint:nilerr // a person who does not answer is a refusal
	}
	return &mcp.ElicitResult{Action: accepted}, nil
}

// field is one value that a server asks for.
type field struct {
	name, title, description, kind string
	// options are shown, values are what the server gets for them.
	options  []string
	values   []any
	fallback any
	required bool
}

// fieldsOf reads a requested schema: flat, of plain values.
func fieldsOf(requested any) ([]field, error) {
	b, err := json.Marshal(requested)
	if err != nil {
		return nil, err
	}
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type        string   `json:"type"`
			Title       string   `json:"title"`
			Description string   `json:"description"`
			Enum        []string `json:"enum"`
			EnumNames   []string `json:"enumNames"`
			OneOf       []struct {
				Const any    `json:"const"`
				Title string `json:"title"`
			} `json:"oneOf"`
			Default any `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(b, &schema); err != nil {
		return nil, fmt.Errorf("the requested schema cannot be asked for: %w", err)
	}
	if len(schema.Properties) > maxFields {
		return nil, fmt.Errorf("a question has at most %d fields", maxFields)
	}
	var all []field
	for name, p := range schema.Properties {
		f := field{name: name, title: p.Title, description: p.Description, kind: p.Type, fallback: p.Default, required: slices.Contains(schema.Required, name)}
		for i, v := range p.Enum {
			shown := v
			if len(p.EnumNames) == len(p.Enum) {
				shown = p.EnumNames[i]
			}
			f.options, f.values = append(f.options, shown), append(f.values, v)
		}
		for _, o := range p.OneOf {
			f.options, f.values = append(f.options, o.Title), append(f.values, o.Const)
		}
		if p.Type == "boolean" {
			f.options, f.values = []string{"yes", "no"}, []any{true, false}
		}
		for i := range f.options {
			f.options[i] = cut(clean(f.options[i]), maxOption)
		}
		if len(f.options) > maxOptions {
			f.options = nil // the values are typed
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// question is the text of one field.
func question(message string, f field, first bool) string {
	var lines []string
	if first {
		lines = append(lines, cut(cleanLines(message), maxQuestion/2))
	}
	what := clean(f.title)
	if what == "" {
		what = clean(f.name)
	}
	if text := clean(f.description); text != "" {
		what = strings.TrimSpace(what + ": " + text)
	}
	if f.fallback != nil {
		what += fmt.Sprintf(" (empty: %s)", clean(fmt.Sprint(f.fallback)))
	}
	lines = append(lines, cut(what, maxQuestion/4))
	if f.sensitive(message) {
		lines = append(lines, kept)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// kept is what a person reads who is asked for a text that may be a secret.
const kept = "[agentctl: the answer goes to the server and stays in the journal of the run as it is typed. Type no password and no key.]"

// sensitive reports whether a field may ask for a secret, for which a server must use a page
// of its own.
func (f *field) sensitive(message string) bool {
	if f.name == "" || len(f.options) > 0 || f.kind == "integer" || f.kind == "number" {
		return false
	}
	text := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(message + " " + f.name + " " + f.title + " " + f.description))
	return slices.ContainsFunc([]string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "credential"},
		func(word string) bool { return strings.Contains(text, word) })
}

func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// maxTries bounds how often a person is asked for one value.
const maxTries = 3

// field asks for one value; nil leaves out one that need not be given.
func (l *link) field(ctx context.Context, call string, f field, text string) (any, error) {
	for range maxTries {
		said, err := l.person(ctx, call, host.Question{Text: text, Options: f.options})
		if err != nil {
			return nil, err
		}
		value, err := f.read(said)
		if err == nil {
			return value, nil
		}
		text = err.Error() + "\n" + text
	}
	return nil, fmt.Errorf("no usable answer")
}

// read turns an answer into a value of the field's type.
func (f *field) read(said string) (any, error) {
	if i := slices.Index(f.options, said); i >= 0 {
		return f.values[i], nil
	}
	said = strings.TrimSpace(said)
	if said == "" {
		if f.fallback != nil || !f.required {
			return f.fallback, nil
		}
		return nil, fmt.Errorf("%s is required", clean(f.name))
	}
	switch f.kind {
	case "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", said)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(said, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", said)
		}
		return n, nil
	case "array":
		var all []any
		for one := range strings.SplitSeq(said, ",") {
			all = append(all, strings.TrimSpace(one))
		}
		return all, nil
	}
	return said, nil
}
