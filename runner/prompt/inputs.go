package prompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// open begins a reference to an input; "$${" is a literal "${".
const open = "${inputs."

// Fill replaces ${inputs.name} by the run's data. The text is read once:
// inserted values are data and are not expanded again.
func Fill(text string, inputs map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, open)
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + open)
			text = text[i+len(open):]
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("%q has no closing brace", cut(text[i:]))
		}
		name := text[i+len(open) : i+end]
		value, ok := inputs[name]
		if !ok {
			return "", fmt.Errorf("input %q is not given%s", name, known(inputs))
		}
		b.WriteString(text[:i] + plain(value))
		text = text[i+end+1:]
	}
}

// Escape writes a text so that Fill returns it as it is.
func Escape(text string) string { return strings.ReplaceAll(text, open, "$"+open) }

// plain writes a string without its quotes and any other value as JSON.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

func known(inputs map[string]json.RawMessage) string {
	if len(inputs) == 0 {
		return "; give it with --input NAME=VALUE or in spec.inputs of a Run"
	}
	names := make([]string, 0, len(inputs))
	for name := range inputs {
		names = append(names, name)
	}
	slices.Sort(names)
	return "; given are: " + strings.Join(names, ", ")
}

func cut(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

// Reference is the place of a text that Fill replaces.
type Reference struct {
	// Name of the input, and At is the offset of the text in bytes.
	Name string
	At   int
}

// References are those that Fill would replace; an unfinished one ends them.
func References(text string) (all []Reference) {
	at := 0
	for {
		i := strings.Index(text[at:], open)
		if i < 0 {
			return all
		}
		i += at
		at = i + len(open)
		if i > 0 && text[i-1] == '$' {
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return all
		}
		all = append(all, Reference{text[at : i+end], i})
		at = i + end + 1
	}
}
