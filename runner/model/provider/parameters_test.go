package provider

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

var quotedName = regexp.MustCompile("`([A-Za-z]+)`")

// TestTheDocsTellEveryParameter holds the table of docs/models.md against what
// the providers take.
func TestTheDocsTellEveryParameter(t *testing.T) {
	text, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	var specs []v1alpha1.ModelSpec
	header := "| name |"
	for _, p := range All().Remote() {
		for _, api := range p.APIs {
			specs = append(specs, v1alpha1.ModelSpec{Provider: p.Name, API: api})
			header += " " + string(api) + " |"
		}
		if len(p.APIs) == 0 {
			specs = append(specs, v1alpha1.ModelSpec{Provider: p.Name})
			header += " " + string(p.Name) + " |"
		}
	}
	header += " |"
	_, table, found := strings.Cut(string(text), header+"\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatalf("docs/models.md has no table of parameters that begins with %q", header)
	}
	said := make([][]string, len(specs))
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 2+len(specs) {
			t.Fatalf("%q is no row", row)
		}
		var names []string
		for _, m := range quotedName.FindAllStringSubmatch(cells[1], -1) {
			names = append(names, m[1])
		}
		for i := range specs {
			cell := cells[2+i]
			some := slices.ContainsFunc(names, func(n string) bool { return strings.Contains(cell, "`"+n+"`") })
			for _, name := range names {
				takes := strings.TrimSpace(cell) != "–" && (!some || strings.Contains(cell, "`"+name+"`"))
				if takes {
					said[i] = append(said[i], name)
				}
				if strings.Contains(problemsOf(specs[i], name), "has no parameter") == takes {
					t.Errorf("%s %s: the docs say of %s %q", specs[i].Provider, specs[i].API, name, strings.TrimSpace(cell))
				}
			}
		}
	}
	for i, spec := range specs {
		_, list, _ := strings.Cut(problemsOf(spec, "zzz"), "it has ")
		list, _, _ = strings.Cut(list, ", and extra")
		taken := strings.Split(list, ", ")
		if len(taken) < 5 {
			t.Errorf("%s %s takes %q only", spec.Provider, spec.API, taken)
		}
		for _, name := range taken {
			if !slices.Contains(said[i], name) {
				t.Errorf("%s %s: the docs do not tell of %s", spec.Provider, spec.API, name)
			}
		}
	}
}

func TestTheDocsHaveARowForEveryProvider(t *testing.T) {
	text, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range All() {
		_, row, found := strings.Cut(string(text), "\n| `"+string(p.Name)+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		if !found || !strings.Contains(row, p.KeyVariable) {
			t.Errorf("the first table of docs/models.md has no row of provider %s with the key variable %q", p.Name, p.KeyVariable)
		}
	}
}

func TestAProviderThatChecksNoParametersIsNotOffered(t *testing.T) {
	unchecked := model.Provider{Name: "unchecked", BaseURL: "https://unchecked.example"}
	spec := v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini, Parameters: &v1alpha1.JSON{Raw: []byte(`{"foo":1}`)}}
	found := append(All(), unchecked).Problems(&spec)
	if len(found) != 1 || !strings.Contains(found[0].Message, "gemini has no parameter foo; it has ") {
		t.Errorf("%v", found)
	}
}

func TestAParameterOfAnotherProviderIsNamedAsSuch(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha1.ModelSpec
		want string
	}{
		"thinkingBudget": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI}, "openai has no parameter thinkingBudget; it is a parameter of anthropic, gemini"},
		"stop": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, API: v1alpha1.APIResponses},
			"openai with api responses has no parameter stop; it is a parameter of openai with api chat, anthropic, gemini",
		},
		"top_k": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini}, "gemini has no parameter top_k; did you mean topK?"},
		"foo":   {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini}, "gemini has no parameter foo; it has "},
	} {
		if got := problemsOf(c.spec, name); !strings.HasPrefix(got, "spec.parameters."+name+": "+c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// problemsOf are a provider's problems with a parameter without a value.
func problemsOf(spec v1alpha1.ModelSpec, name string) string {
	spec.Parameters = &v1alpha1.JSON{Raw: []byte(`{"` + name + `":null}`)}
	var all []string
	for _, p := range All().Problems(&spec) {
		all = append(all, p.String())
	}
	return strings.Join(all, "\n")
}
