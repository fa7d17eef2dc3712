package skill

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// departures are where a head is read although the specification does not allow it, beside
// the problems that parseHead reports.
func departures(head []byte) (all []string) {
	var doc yaml.Node
	if yaml.Unmarshal(head, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil // parseHead reports it
	}
	fields, seen := doc.Content[0], map[string]bool{}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		name, value := fields.Content[i].Value, fields.Content[i+1]
		if seen[name] {
			all = append(all, fmt.Sprintf("it has the field %q twice", short(name)))
		}
		seen[name] = true
		if wrong := departure(name, value); wrong != "" {
			all = append(all, wrong)
		}
	}
	return all
}

// departure is what is wrong with a field that can be read all the same.
func departure(name string, value *yaml.Node) string {
	text := value.Kind == yaml.ScalarNode && value.Tag == "!!str"
	switch name {
	case "name", "description", "license":
		if value.Kind == yaml.ScalarNode && !text {
			return name + " is no text: put it into quotes"
		}
	case "compatibility":
		if value.Kind == yaml.ScalarNode && strings.TrimSpace(value.Value) == "" {
			return "its compatibility is empty: leave the field out"
		}
	case "allowed-tools":
		if text && separatedByCommas(value.Value) {
			return "allowed-tools has commas between its entries: separate them with spaces"
		}
	case "metadata":
		for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
			if v := value.Content[i+1]; v.Kind != yaml.ScalarNode || v.Tag != "!!str" {
				return fmt.Sprintf("metadata.%s is no text: put it into quotes", short(value.Content[i].Value))
			}
		}
	}
	return ""
}

// separatedByCommas reports whether a list of tools has a comma outside parentheses.
func separatedByCommas(text string) bool {
	depth := 0
	for _, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}
