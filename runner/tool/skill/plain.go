package skill

import (
	"strings"
	"unicode"

	yaml "go.yaml.in/yaml/v3"
)

// field is one of a head.
type field struct {
	name  string
	value yaml.Node
}

// plainFields reads a head of the simplest form, which nearly all have: a field on each
// line, and below metadata a name and a value on each line. It reports false for any other,
// which has to be read as YAML; the result is the same. A run that has hundreds of skills
// would spend most of its start on YAML.
func plainFields(head []byte) (fields []field, ok bool) {
	var metadata *yaml.Node
	lines := strings.Split(strings.TrimSuffix(string(head), "\n"), "\n")
	for i, line := range lines {
		indented := strings.HasPrefix(line, "  ")
		name, value, found := strings.Cut(strings.TrimPrefix(line, "  "), ":")
		if !found || !fieldName(name) || indented != (metadata != nil && indented) {
			return nil, false
		}
		switch {
		case indented:
			v, ok := plainValue(value)
			if !ok {
				return nil, false
			}
			metadata.Content = append(metadata.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, v)
		case name == "metadata":
			if value != "" || i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "  ") {
				return nil, false
			}
			fields = append(fields, field{name, yaml.Node{Kind: yaml.MappingNode}})
			metadata = &fields[len(fields)-1].value
		default:
			v, ok := plainValue(value)
			if !ok {
				return nil, false
			}
			fields, metadata = append(fields, field{name, *v}), nil
		}
	}
	return fields, len(fields) > 0
}

// fieldName reports whether YAML reads a name as it is written.
func fieldName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") == "" && name[0] != '-'
}

// plainValue is what follows the colon of a field, if YAML reads it as it is written.
func plainValue(text string) (*yaml.Node, bool) {
	value := strings.Trim(text, " ")
	if !strings.HasPrefix(text, " ") || value == "" || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return nil, false
	}
	if quoted := value[1:]; value[0] == '"' || value[0] == '\'' {
		quoted, ok := strings.CutSuffix(quoted, value[:1])
		return &yaml.Node{Kind: yaml.ScalarNode, Value: quoted}, ok && !strings.ContainsAny(quoted, `"'\`)
	}
	first := value[0]
	letter := first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || first >= '0' && first <= '9'
	if !letter || strings.Contains(value, ": ") || strings.Contains(value, " #") || strings.HasSuffix(value, ":") {
		return nil, false
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value}, true
}
