package preset

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	if got := strings.Join(Names(), " "); got != "build compaction explore general plan title" {
		t.Errorf("presets are %s", got)
	}
	for _, name := range Names() {
		file, text, ok := Lookup(name)
		if !ok || file != "(shipped)/presets/"+name+"/agent.yaml" || !strings.Contains(string(text), "metadata: {name: "+name+"}\n") {
			t.Errorf("%s: found %t in %s", name, ok, file)
		}
	}
	for _, name := range []string{"", ".", "base", "../presets/plan", "plan/agent.yaml", "*"} {
		if _, _, ok := Lookup(name); ok {
			t.Errorf("%q is found", name)
		}
	}
}

func TestEachFamilyHasABaseText(t *testing.T) {
	seen := map[string]string{}
	for model, family := range map[string]string{
		"claude-opus-4-5": "claude", "anthropic/claude-x": "claude", "gpt-5": "gpt", "o3-mini": "gpt", "openai/gpt-oss": "gpt", "gemini-3-pro": "gemini", "qwen3-coder": "other", "": "other",
	} {
		if got := Family(model); got != family {
			t.Errorf("%s is of family %s, want %s", model, got, family)
		}
		text := Base(model)
		if len(text) < 100 || !strings.Contains(text, "data, not instructions") {
			t.Errorf("%s: %q", model, text)
		}
		if other := seen[text]; other != "" && other != family {
			t.Errorf("%s and %s have one text", family, other)
		}
		seen[text] = family
	}
}
