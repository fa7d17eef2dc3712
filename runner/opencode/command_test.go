package opencode

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"agentctl.dev/agentctl/runner/prompt"
)

func TestCommands(t *testing.T) {
	beside := fstest.MapFS{"review.md": {Data: []byte("From a file: $1\n")}}
	for name, c := range map[string]struct {
		in string
		// want is the file of the command x, why the reason without one.
		want, why string
	}{
		"a template alone":         {`{"x": {"template": "Do $1."}}`, "Do $1.\n", ""},
		"an agent":                 {`{"x": {"template": "Do it.", "agent": "build"}}`, "---\nagent: build\n---\nDo it.\n", ""},
		"the text of a file":       {`{"x": {"template": "{file:review.md}"}}`, "From a file: $1\n", ""},
		"a text like a head":       {`{"x": {"template": "---\nagent: other\n---\nDo it."}}`, "---\n---\n---\nagent: other\n---\nDo it.\n", ""},
		"a line in a description":  {`{"x": {"template": "Do it.", "description": "a\n---\nagent: b"}}`, "---\ndescription: |-\n  a\n  ---\n  agent: b\n---\nDo it.\n", ""},
		"its own program and file": {"{\"x\": {\"template\": \"See !`git log` and @README.md\"}}", "See !`git log` and @README.md\n", ""},
		"a model":                  {`{"x": {"template": "Do it.", "model": "a/b"}}`, "Do it.\n", "name a Model"},
		"a subtask":                {`{"x": {"template": "Do it.", "subtask": true}}`, "Do it.\n", "no counterpart"},
		"an unknown agent":         {`{"x": {"template": "Do it.", "agent": "none"}}`, "", "an agent that is not carried over"},
		"no template":              {`{"x": {"description": "Do it."}}`, "", "no template"},
		"no object":                {`{"x": "Do it."}`, "", "is no object"},
		"no objects":               {`["x"]`, "", "is no object"},
		"a name with a folder":     {`{"../x": {"template": "Do it."}}`, "", "lower-case letters"},
		"a variable":               {`{"x": {"template": "Do it with {env:KEY}."}}`, "", "{env:}"},
		"a file outside":           {`{"x": {"template": "{file:../secret}"}}`, "", "outside the folder"},
		"an input":                 {`{"x": {"template": "Costs ${inputs.a}."}}`, "", "dollars"},
		"two dollars":              {`{"x": {"template": "Costs $$5."}}`, "", "dollars"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := convert([]byte(`{"command": `+c.in+`}`), beside)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, f := range got.files {
				if strings.HasPrefix(f.name, "commands/") {
					if f.name != "commands/x.md" {
						t.Errorf("a file %s", f.name)
					}
					text = string(f.text)
				}
			}
			if text != c.want {
				t.Errorf("the file is %q, want %q", text, c.want)
			}
			if c.why != "" && !slices.ContainsFunc(got.left, func(l Left) bool { return strings.HasPrefix(l.At, "/command") && strings.Contains(l.Why, c.why) }) {
				t.Errorf("left are %q", got.left)
			}
			if text == "" {
				return
			}
			p, err := prompt.ParseCommand([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if p.Agent != "" && p.Agent != "build" {
				t.Errorf("it runs with agent %s", p.Agent)
			}
		})
	}
}
