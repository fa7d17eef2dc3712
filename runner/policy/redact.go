package policy

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/expr"
)

// redacted replaces a value.
const redacted = "[redacted]"

// redactSecrets replaces what looks like a credential.
func redactSecrets(s string) string { return expr.HideCredentials(s, redacted) }

// redactArgs rewrites arguments by what the rules say.
func redactArgs(args json.RawMessage, rules []*rule) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	before, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		v = r.redact(v)
	}
	after, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(before, after) {
		return args, nil
	}
	return after, nil
}

// redact applies one rule to a value.
func (r *rule) redact(v any) any {
	if r.spec.Redact == nil {
		return v
	}
	if len(r.spec.Redact.Fields) > 0 {
		v = redactFields(v, r.spec.Redact.Fields, "", false)
	}
	if r.spec.Redact.Secrets {
		v = redactTexts(v)
	}
	return v
}

// redactFields replaces the values of fields, at any depth: a field is named by
// its own name or by its path with dots. In a text of a result they are looked for
// as well; in one of a call only where all of it is JSON: a script with a hole in
// it is another script.
func redactFields(v any, fields []string, at string, texts bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			path := strings.TrimPrefix(at+"."+k, ".")
			if !slices.Contains(fields, k) && !slices.Contains(fields, path) {
				v[k] = redactFields(x, fields, path, texts)
				continue
			}
			if _, ok := x.(string); ok || x == nil {
				v[k] = redacted
			} else {
				// The tool's schema would refuse a text here.
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = redactFields(v[i], fields, at, texts)
		}
	case string:
		// JSON inside of JSON: the body of a message, a log line.
		if t := strings.TrimLeft(v, " \t\r\n"); (strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[")) && json.Valid([]byte(v)) {
			return redactJSON(v, fields)
		}
		if texts {
			return redactNamed(v, fields)
		}
	}
	return v
}

func redactTexts(v any) any {
	switch v := v.(type) {
	case string:
		return redactSecrets(v)
	case map[string]any:
		for k, x := range v {
			// The name of a field, such as token, is a better sign than its value.
			if s, ok := x.(string); ok && expr.NamesCredential(k, s) {
				v[k] = redacted
				continue
			}
			v[k] = redactTexts(x)
		}
	case []any:
		for i := range v {
			v[i] = redactTexts(v[i])
		}
	}
	return v
}

// redactText applies one rule to a result: fields of a JSON text, credentials
// in any text.
func (r *rule) redactText(s string) string {
	if r.spec.Redact == nil || s == "" {
		return s
	}
	if len(r.spec.Redact.Fields) > 0 {
		s = redactJSON(s, r.spec.Redact.Fields)
	}
	if r.spec.Redact.Secrets {
		s = redactSecrets(s)
	}
	return s
}

// withheld replaces a result whose fields cannot be separated.
const withheld = "[redacted: the result is no complete JSON]"

// redactJSON rewrites a text that is JSON, or several of them. In any other text
// the fields are looked for by their names as JSON writes them: output that was
// cut, or has a line before it, still holds them.
func redactJSON(s string, fields []string) string {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if t := strings.TrimLeft(s, " \t\r\n"); strings.HasPrefix(t, "{") || cutList().MatchString(t) {
			// JSON that was cut may hold a part of the field.
			return withheld
		}
		return redactNamed(s, fields)
	}
	switch v.(type) {
	case map[string]any, []any:
	default:
		return redactNamed(s, fields)
	}
	rest := s[d.InputOffset():]
	b, err := json.Marshal(redactFields(v, fields, "", true))
	if err != nil {
		return redacted
	}
	return string(b) + redactRest(rest, fields)
}

// cutList is the beginning of a list of objects or lists.
var cutList = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\[\s*)+\{`)
})

// redactRest continues with the next value of a stream of JSON, or our footer.
func redactRest(rest string, fields []string) string {
	trimmed := strings.TrimLeft(rest, " \t\r\n")
	if trimmed == "" {
		return rest
	}
	if trimmed[0] != '{' && trimmed[0] != '[' {
		return redactNamed(rest, fields)
	}
	return rest[:len(rest)-len(trimmed)] + redactJSON(trimmed, fields)
}

// member is a name and the beginning of its value, as JSON writes them, also
// inside a text of JSON.
var member = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\*"((?:[^"\\]|\\[^"])*)\\*"\s*:\s*(\\*"(?:[^"\\]|\\.)*"?|[^\s,}\]]+)`)
})

// redactNamed replaces the values of fields in a text that is not JSON. If the end of a
// value cannot be found, the text is withheld.
func redactNamed(s string, fields []string) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f[strings.LastIndexByte(f, '.')+1:]
	}
	var out strings.Builder
	at := 0
	for at < len(s) {
		m := member().FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		if !slices.Contains(names, plainName(s[at+m[2]:at+m[3]])) {
			// The value may hold the next name.
			out.WriteString(s[at : at+m[4]])
			at += m[4]
			continue
		}
		if c := s[at+m[4]]; c == '{' || c == '[' || c == '\\' || strings.Contains(s[at+m[3]:at+m[4]], "\n") {
			return withheld
		}
		out.WriteString(s[at : at+m[4]])
		out.WriteString(`"` + redacted + `"`)
		at += m[5]
	}
	out.WriteString(s[at:])
	return out.String()
}

// plainName is the name of a JSON member without escapes; JSON inside of JSON is escaped
// more than once.
func plainName(name string) string {
	name = strings.TrimRight(name, `\`)
	if !strings.Contains(name, `\`) {
		return name
	}
	for strings.Contains(name, `\\`) {
		name = strings.ReplaceAll(name, `\\`, `\`)
	}
	var plain string
	if json.Unmarshal([]byte(`"`+name+`"`), &plain) != nil {
		return name
	}
	return plain
}
