package skill

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// Head are the fields above the text. The specification has these six; each may be empty.
type Head struct {
	Name, Description, License, Compatibility string
	// Metadata are names and values of the author.
	Metadata map[string]string
	// AllowedTools are what the skill would like to use, as its author calls them. They
	// are a wish: nothing is allowed by them.
	AllowedTools []string
}

// What the specification says about lengths.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// parseHead reads the fields. A head that is no YAML only because a value has a colon in
// it, as many have, is read line by line.
func parseHead(text []byte) (h Head, problems []string, err error) {
	if fields, ok := plainFields(text); ok {
		for _, f := range fields {
			if wrong := h.set(f.name, &f.value); wrong != "" {
				problems = append(problems, wrong)
			}
		}
		return h, append(problems, h.problems()...), nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		loose, ok := looseFields(string(text))
		if !ok {
			return h, nil, fmt.Errorf("its head is no YAML with a name and a description: %w", err)
		}
		h.Name, h.Description = loose["name"], loose["description"]
		h.AllowedTools = tools(loose["allowed-tools"])
		return h, append(h.problems(), "its head is no YAML: put values with a colon into quotes"), nil
	}
	if len(doc.Content) == 0 {
		return h, h.problems(), nil
	}
	fields := doc.Content[0]
	if fields.Kind != yaml.MappingNode {
		return h, nil, errors.New("its head is no YAML with a name and a description: it is no mapping of fields")
	}
	if aliased(fields) {
		return h, nil, errors.New("its head has an alias (*name): write the value out")
	}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		if wrong := h.set(fields.Content[i].Value, fields.Content[i+1]); wrong != "" {
			problems = append(problems, wrong)
		}
	}
	return h, append(problems, h.problems()...), nil
}

// set takes a field over and returns what is wrong with it.
func (h *Head) set(name string, value *yaml.Node) string {
	text := func(into *string) string {
		if value.Kind != yaml.ScalarNode {
			return name + " is no text"
		}
		*into = strings.TrimSpace(value.Value)
		return ""
	}
	switch name {
	case "name":
		return text(&h.Name)
	case "description":
		return text(&h.Description)
	case "license":
		return text(&h.License)
	case "compatibility":
		return text(&h.Compatibility)
	case "allowed-tools":
		if value.Kind == yaml.ScalarNode {
			h.AllowedTools = tools(value.Value)
			return ""
		}
		for _, v := range value.Content {
			h.AllowedTools = append(h.AllowedTools, tools(v.Value)...)
		}
		return "allowed-tools is no text with spaces between its entries"
	case "metadata":
		if value.Kind != yaml.MappingNode {
			return "metadata is no mapping of names and texts"
		}
		h.Metadata = map[string]string{}
		for i := 0; i+1 < len(value.Content); i += 2 {
			h.Metadata[value.Content[i].Value] = value.Content[i+1].Value
		}
		return ""
	}
	return fmt.Sprintf("the specification has no field %q", short(name))
}

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

// problems are where the fields differ from the specification.
func (h *Head) problems() (all []string) {
	switch {
	case h.Name == "":
		all = append(all, "it has no name")
	case len(h.Name) > maxName || !nameForm().MatchString(h.Name):
		all = append(all, fmt.Sprintf("its name %q is not 1 to %d of a-z 0-9, with single hyphens between them", short(h.Name), maxName))
	}
	switch n := utf8.RuneCountInString(h.Description); {
	case n == 0:
		all = append(all, "it has no description: a model cannot know when to use it")
	case n > maxDescription:
		all = append(all, fmt.Sprintf("its description has %d characters, more than %d", n, maxDescription))
	}
	if strings.ContainsAny(h.Name+h.Description, "<>") {
		all = append(all, "its name or description has < or >, which are left out")
	}
	if Line(h.Description) != strings.Join(strings.Fields(h.Description), " ") && !strings.ContainsAny(h.Description, "<>") {
		all = append(all, "its description has control characters, which are left out")
	}
	if n := utf8.RuneCountInString(h.Compatibility); n > maxCompatibility {
		all = append(all, fmt.Sprintf("its compatibility has %d characters, more than %d", n, maxCompatibility))
	}
	return all
}

// aliased reports whether a value stands for another: a few lines could stand for gigabytes.
func aliased(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, aliased)
}

// looseFields reads "name: value" lines at the left margin; lines below one that are
// indented belong to it.
func looseFields(text string) (map[string]string, bool) {
	fields, last := map[string]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		name, value, ok := strings.Cut(line, ":")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			if last == "name" || last == "description" || last == "allowed-tools" {
				fields[last] = strings.TrimSpace(fields[last] + " " + strings.TrimSpace(line))
			}
		case ok && !strings.ContainsAny(name, " \t{}[]\"'*&!"):
			last = name
			if _, twice := fields[name]; !twice {
				fields[name] = strings.Trim(strings.TrimSpace(value), `"'`)
			}
		default:
			return nil, false
		}
	}
	return fields, fields["name"] != "" && fields["description"] != ""
}

// tools splits a list of tools at spaces and commas, but not within parentheses: an entry
// may be Bash(git add *).
func tools(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		}
		return depth == 0 && (r == ' ' || r == ',' || r == '\n' || r == '\t' || r == '\r')
	})
}
