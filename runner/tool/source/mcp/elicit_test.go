package mcp

import (
	"strings"
	"testing"
)

// The answer to a form is in the journal: a server that asks for a password by one does what
// the specification forbids.
func TestAFormForASecretSaysWhereTheAnswerGoes(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		field   field
		want    bool
	}{
		"a password":            {"Who are you?", field{name: "password", kind: "string"}, true},
		"a key by its title":    {"", field{name: "x", title: "Your API key", kind: "string"}, true},
		"a secret by the text":  {"Enter the pass\u00adphrase or access-key of the account", field{name: "value", kind: "string"}, true},
		"a name":                {"Who are you?", field{name: "name", kind: "string"}, false},
		"a number of tokens":    {"", field{name: "max_tokens", kind: "integer"}, false},
		"a choice":              {"Which secret?", field{name: "which", options: []string{"a", "b"}}, false},
		"a question of consent": {"May I use the token?", field{}, false},
	} {
		if got := strings.HasSuffix(question(c.message, c.field, true), "\n"+kept); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	long := question(strings.Repeat("x", 2*maxQuestion), field{name: "secret", description: strings.Repeat("y", 2*maxQuestion)}, true)
	if len(long) > maxQuestion || !strings.HasSuffix(long, kept) {
		t.Errorf("a long question has %d bytes", len(long))
	}
}
