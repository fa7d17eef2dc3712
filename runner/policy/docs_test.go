package policy

import (
	"os"
	"strings"
	"testing"
)

// TestDocsListEveryFact: authors of rules find each name that a rule can read.
func TestDocsListEveryFact(t *testing.T) {
	text, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| fact | type | what it is |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/policies.md has no table of facts")
	}
	tells := func(name string, members map[string]bool) bool {
		for row := range strings.SplitSeq(table, "\n") {
			told := strings.Contains(row, "`"+name+"`")
			for m := range members {
				told = told && strings.Contains(row, "`"+m+"`")
			}
			if told {
				return true
			}
		}
		return false
	}
	facts := 0
	for _, v := range sharedVars() {
		if len(v.Type.Fields()) == 0 {
			facts++
			members := map[string]bool{}
			v.Type.Names(members)
			if !tells(v.Name, members) {
				t.Errorf("docs/policies.md does not tell of %s with %v", v.Name, members)
			}
		}
		for _, field := range v.Type.Fields() {
			facts++
			of, _ := v.Type.Field(field)
			members := map[string]bool{}
			of.Names(members)
			if !tells(v.Name+"."+field, members) {
				t.Errorf("docs/policies.md does not tell of %s.%s with %v", v.Name, field, members)
			}
		}
	}
	if facts < 30 {
		t.Errorf("%d facts found", facts)
	}
}
