package admission

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/crds"
)

// TestNotYetPageNamesTheRefusedFields: the page lists what admission refuses, and
// no other field or value.
func TestNotYetPageNamesTheRefusedFields(t *testing.T) {
	text, err := os.ReadFile("../../docs/not-yet.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, f := range notYet {
		if f.Values == nil {
			want[f.Kind+" "+f.Path] = true
		}
		for _, v := range f.Values {
			want[f.Kind+" "+f.Path+": "+v] = true
		}
	}
	if diff := cmp.Diff(want, fieldsOf(t, string(text))); diff != "" {
		t.Errorf("docs/not-yet.md differs from what admission refuses (-admission +page):\n%s", diff)
	}
}

// fieldsOf reads the first column of the table of refused fields. A kind is named
// before its first field, and "`path: A` and `B`" lists values of one field.
func fieldsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	_, section, found := strings.Cut(page, "\n## Fields that are refused\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/not-yet.md has no section about refused fields")
	}
	fields := map[string]bool{}
	name := regexp.MustCompile("([A-Z][a-z]+)? ?`([^`]+)`")
	for row := range strings.SplitSeq(section, "\n| ") {
		cell, _, _ := strings.Cut(row, " |")
		kind, path := "", ""
		for _, m := range name.FindAllStringSubmatch(cell, -1) {
			if m[1] != "" {
				kind = m[1]
			}
			if !strings.HasPrefix(m[2], "spec.") {
				fields[kind+" "+path+": "+m[2]] = true
				continue
			}
			path, _, _ = strings.Cut(m[2], ":")
			fields[kind+" "+m[2]] = true
		}
	}
	return fields
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
