package admission

import (
	"os"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/crds"
)

// TestDocsNameWhatDoesNotWorkYet: an author who plans with a field reads it before
// the manifest is written.
func TestDocsNameWhatDoesNotWorkYet(t *testing.T) {
	text, err := os.ReadFile("../../docs/manifests.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Not yet\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/manifests.md has no section Not yet")
	}
	rows := strings.Split(section, "\n")
	for _, f := range notYet {
		if !slices.ContainsFunc(rows, func(row string) bool { return mentions(row, f) }) {
			t.Errorf("docs/manifests.md does not name %s %s %v", f.Kind, f.Path, f.Values)
		}
	}
}

func mentions(row string, f FieldNotYet) bool {
	missing := func(v string) bool { return !strings.Contains(row, v) }
	return strings.Contains(row, f.Kind+" `") && strings.Contains(row, "`"+f.Path) && !slices.ContainsFunc(f.Values, missing)
}

// TestExplainMarksWhatDoesNotWorkYet: the comment of a field is what explain,
// kubectl and editors show.
func TestExplainMarksWhatDoesNotWorkYet(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range notYet {
		path := f.Kind + "." + strings.ReplaceAll(f.Path, "[]", "")
		listed[path] = true
		e, err := crds.Explain(path, false)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if text := strings.Join(strings.Fields(e.Text()), " "); !strings.Contains(text, "Not yet: ") {
			t.Errorf("%s is refused, and its comment does not mark it:\n%s", path, text)
		}
	}
	for _, kind := range crds.Kinds() {
		schema, _ := crds.Kind(kind)
		marked(schema.Schema, kind, func(path string) {
			if !listed[path] {
				t.Errorf("the comment of %s marks it as not yet, and admission accepts it", path)
			}
		})
	}
}

// marked visits the fields whose comment says that they do not work yet, and
// nothing below them.
func marked(schema map[string]any, path string, visit func(path string)) {
	if text, _ := schema["description"].(string); strings.Contains(strings.Join(strings.Fields(text), " "), "Not yet: ") {
		visit(path)
		return
	}
	if items, ok := schema["items"].(map[string]any); ok {
		marked(items, path, visit)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		if s, ok := v.(map[string]any); ok {
			marked(s, path+"."+name, visit)
		}
	}
}
