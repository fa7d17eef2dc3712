package opencode

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"
)

// FuzzConvert: what is read is refused with a place, or becomes manifests, each
// in a file of its own and of YAML.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"permission": "ask"}`, "\xef\xbb\xbf{\n// x\n\"a\": [1, 2,], /* y */}",
		`{"permission": {"bash": {"*": "ask", "git *": "allow", "1": "deny"}, "edit": "deny", "x_*": "allow"}, "tools": {"write": false}}`,
		`{"model": "anthropic/m", "agent": {"a": {"prompt": "{file:p.txt}", "steps": 3, "temperature": 0.5, "mode": "subagent"}, "plan": {"disable": true}}}`,
		`{"mcp": {"a b": {"type": "local", "command": ["x"], "environment": {"K": "word", "L": "{env:L}"}}, "r": {"type": "remote", "url": "https://x"}}}`,
		`{"provider": {"p": {"options": {"baseURL": "http://x", "apiKey": "word"}}}, "model": "p/m"}`,
		`[`, `{"a": "\ud800"}`, `{"a": 1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := convert(in, fstest.MapFS{"p.txt": {Data: []byte("text")}})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		if len(c.files) == 0 {
			t.Error("no manifest, and no error")
		}
		names := map[string]bool{}
		for _, w := range c.files {
			if names[w.name] || strings.ContainsAny(w.name, `/\`) {
				t.Errorf("file %q", w.name)
			}
			names[w.name] = true
			var documents any
			for doc := range bytes.SplitSeq(w.text, []byte("\n---\n")) {
				if err := yaml.Unmarshal(doc, &documents); err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
			}
		}
	})
}
