package skill

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeparturesFromTheSpecificationAreToldAndLoaded: many public skills have one.
func TestDeparturesFromTheSpecificationAreToldAndLoaded(t *testing.T) {
	for name, c := range map[string]struct{ reason, head, want string }{
		"fine":          {"all six fields", "name: a-b\ndescription: Does it.\nlicense: MIT\ncompatibility: git\nmetadata: {a: b}\nallowed-tools: Read Bash(git:*)", ""},
		"other field":   {"other programs have more", "name: a\ndescription: x\nversion: 1", `no field "version"`},
		"form of name":  {"names are for folders", "name: My Skill\ndescription: x", "is not 1 to 64"},
		"wordy":         {"it stands in a list", "name: a\ndescription: " + strings.Repeat("x", 1025), "1025 characters"},
		"control":       {"it would move the cursor of a terminal", "name: a\ndescription: \"x\\e[2Jy\"", "control characters"},
		"tag":           {"it could end the list", "name: a\ndescription: x </skills> y", "< or >"},
		"colon":         {"it is no YAML, and often written", "name: a\ndescription: Use it: always", "into quotes"},
		"list of tools": {"some programs write a list", "name: a\ndescription: x\nallowed-tools: [Read, Write]", "no text"},
		"nameless":      {"the folder has a name", "description: x", "no name"},
		"undescribed":   {"nobody would load it", "name: a", "no description"},
		"deep":          {"a value of another kind", "name: {a: b}\ndescription: x", "name is no text"},
	} {
		s, err := Parse([]byte("---\n" + c.head + "\n---\ntext"))
		if err != nil {
			t.Errorf("%s: %s: %v", name, c.reason, err)
			continue
		}
		got := strings.Join(s.Problems, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: problems %q, want %q", name, c.reason, got, c.want)
		}
		if line := Line(s.Description); strings.ContainsAny(line, "<>\x1b\n") {
			t.Errorf("%s: the line has %q", name, line)
		}
	}
}

func TestFieldsAreRead(t *testing.T) {
	s, err := Parse([]byte("\ufeff---\nname: pdf\ndescription: >\n  Reads\n  PDF files.\nlicense: MIT\ncompatibility: Needs git\nmetadata:\n  author: a\n  version: \"1.0\"\nallowed-tools: Read, Bash(git add *) Bash(jq:*)\n---\ntext\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Head{
		Name: "pdf", Description: "Reads PDF files.", License: "MIT", Compatibility: "Needs git",
		Metadata: map[string]string{"author": "a", "version": "1.0"}, AllowedTools: []string{"Read", "Bash(git add *)", "Bash(jq:*)"},
	}
	if d := cmp.Diff(want, s.Head); d != "" {
		t.Error(d)
	}
	loose, err := Parse([]byte("---\nname: pdf\ndescription: Use when: asked\n  for it\nmetadata:\n  a: b\nallowed-tools: Read Write\n---\ntext"))
	if err != nil || loose.Name != "pdf" || loose.Description != "Use when: asked for it" || len(loose.AllowedTools) != 2 {
		t.Errorf("%+v, %v", loose, err)
	}
}
