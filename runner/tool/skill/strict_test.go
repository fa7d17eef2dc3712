package skill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDeparturesAreWhatOtherProgramsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		reason, head string
		want         []string
	}{
		"none":       {"as the specification has it", "name: a\ndescription: b\nallowed-tools: Bash(git add, x) Read\nmetadata: {version: \"1.0\"}", nil},
		"metadata":   {"values are texts", "name: a\ndescription: b\nmetadata: {version: 1.0}", []string{"metadata.version is no text: put it into quotes"}},
		"nested":     {"values are not mappings", "name: a\ndescription: b\nmetadata: {x: {y: z}}", []string{"metadata.x is no text: put it into quotes"}},
		"number":     {"a name is a text", "name: 12\ndescription: b", []string{"name is no text: put it into quotes"}},
		"empty":      {"1 to 500 characters, if it is there", "name: a\ndescription: b\ncompatibility: \"\"", []string{"its compatibility is empty: leave the field out"}},
		"commas":     {"spaces separate tools", "name: a\ndescription: b\nallowed-tools: Read, Write", []string{"allowed-tools has commas between its entries: separate them with spaces"}},
		"twice":      {"which one counts is not known", "name: a\ndescription: b\nname: c", []string{`it has the field "name" twice`}},
		"not a head": {"reported elsewhere", "just a text", nil},
	} {
		if diff := cmp.Diff(c.want, departures([]byte(c.head))); diff != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", name, c.reason, diff)
		}
	}
}
