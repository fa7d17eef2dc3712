package admission

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// TestThePresetsAreAdmitted reads every folder of manifests/ as a user would.
func TestThePresetsAreAdmitted(t *testing.T) {
	folders, err := filepath.Glob("../../manifests/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no presets: %v", err)
	}
	for _, dir := range folders {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		_, c, found := Read(t.Context(), []string{dir}, nil, Options{Models: provider.All(), Tools: sources.All()})
		if len(found) > 0 {
			var b strings.Builder
			_ = found.Write(&b, 0)
			t.Errorf("%s:\n%s", dir, b.String())
			continue
		}
		if len(c.Agents) == 1 {
			if _, err := c.Resolve(ResolveOptions{}); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
}

// TestEveryHintLeadsSomewhere runs explain for each path that a finding of the
// corpus refers to.
func TestEveryHintLeadsSomewhere(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	see := regexp.MustCompile(`see: agentctl explain (\S+)`)
	checked := 0
	for _, path := range archives {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range see.FindAllStringSubmatch(string(text), -1) {
			checked++
			if _, err := crds.Explain(m[1], false); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(path), m[1], err)
			}
		}
	}
	if checked == 0 {
		t.Error("no hint was found")
	}
}

// TestEveryPatternCompiles: a pattern that Go cannot read would refuse every value.
func TestEveryPatternCompiles(t *testing.T) {
	var walk func(kind string, v any)
	walk = func(kind string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["pattern"].(string); ok {
				if _, err := regexp.Compile(p); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			for _, e := range v {
				walk(kind, e)
			}
		case []any:
			for _, e := range v {
				walk(kind, e)
			}
		}
	}
	for _, kind := range crds.Kinds() {
		k, _ := crds.Kind(kind)
		walk(kind, k.Schema)
	}
}

func TestExpressionsCanBeLeftOut(t *testing.T) {
	text := object("Model", "m", "  provider: openai\n") + object("Policy", "p", "  rules: [{name: r, when: \"((\", action: deny}]\n")
	set, found := manifest.Load(t.Context(), []string{"-"}, strings.NewReader(text))
	if c, more := Admit(set, Options{Models: provider.All(), Tools: sources.All(), SkipExpressions: true}); len(found)+len(more) > 0 || len(c.Policies) != 1 {
		t.Errorf("findings %v %v", found, more)
	}
	if _, more := Admit(set, Options{Models: provider.All(), Tools: sources.All()}); len(more) != 2 {
		t.Errorf("findings %v", more)
	}
}

func TestTestsCanBeLeftOut(t *testing.T) {
	text := object("Agent", "a", "  modelRef: {name: m}\n") + object("Model", "m", "  provider: scripted\n  scripted: {steps: [{say: x}]}\n") +
		object("Test", "t", "  agentRef: {name: b}\n  policyRefs: [{name: baseline}]\n  expect: [\"((\"]\n")
	set, found := manifest.Load(t.Context(), []string{"-"}, strings.NewReader(text))
	c, more := Admit(set, Options{Models: provider.All(), Tools: sources.All(), SkipTests: true})
	if len(found)+len(more) > 0 || len(c.Policies) > 0 {
		t.Errorf("a run needs no Test: findings %v %v, policies %v", found, more, c.Policies)
	}
	if _, more := Admit(set, Options{Models: provider.All(), Tools: sources.All()}); len(more) != 2 {
		t.Errorf("findings %v", more)
	}
}
