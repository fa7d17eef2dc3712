package manifest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

// seeds are texts that have broken YAML readers before.
func seeds() []string {
	return []string{
		agentText,
		agentText + "---\n" + agentText,
		"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
		"a: &a [*a]\n", "a: &a {<<: *a}\n", "*a", "&a", "? ? ?\n: :\n",
		"on: x\ntrue: y\n'on': z\n", "rules:\n- on: Call\n",
		"\ufeff# bom\nkind: Policy\nspec: {rules: [{on: on, name: x, action: deny}]}\n",
		"%YAML 1.1\n%TAG ! x\n---\na: 1\n...\n--- |\n  text\n--- # c\n---x\n",
		"a: \"b\n  c\"\n", "a: 'b\n---\nc'\n", "\t", "\r\n---\r\nkind: Run\r\n", "a: !!binary aGk=\n", "a: 2001-01-01\n", "a: .inf\n", "a: 0x1F\nb: 0o7\nc: 1_000\nd: 1e400\n",
		strings.Repeat("[", 200), strings.Repeat("{a: ", 200), strings.Repeat("- ", 200),
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: openai\n  apiKey: sk-secret\n  parameters: {on: [off]}\n",
		"kind: Tool\nmetadata: {name: ~}\nspec: {source: {mcp: {}}, env: [~, {name: A}], limits: {cpu: 1.5}}\n",
		"kind: Run\nspec: {limits: {maxSteps: 99999999999}, inputs: {y: n}}\n",
	}
}

// FuzzLoad holds Load to its promises for any text: it ends, it does not
// panic, what it says can be shown, and no document comes without an error or
// a decoded value.
func FuzzLoad(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, found := Load(t.Context(), []string{"-"}, strings.NewReader(text))
		if len(set.Documents) == 0 && !found.HasErrors() {
			t.Error("nothing was read, and nothing was said")
		}
		for _, d := range set.Documents {
			if d.Value == nil {
				t.Error("a document without a value")
			}
			d.Locate("spec.tools[0].name")
		}
		var b strings.Builder
		if err := found.Write(&b, 0); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), hidden) {
				t.Errorf("a control character is shown: %q", line)
			}
		}
	})
}

// FuzzSplit compares the borders between documents with those of a decoder.
func FuzzSplit(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, ok := decoded(text)
		if !ok {
			return // no YAML: there is nothing to compare with
		}
		got := 0
		for _, c := range split([]byte(text)) {
			var n yaml.Node
			if err := yaml.Unmarshal(c.data, &n); err != nil {
				t.Fatalf("the chunk %q of valid YAML is not: %v", c.data, err)
			}
			got++
		}
		if got != want {
			t.Errorf("%d documents, the decoder finds %d in %q", got, want, text)
		}
	})
}

// decoded counts the documents that hold something.
func decoded(text string) (int, bool) {
	if strings.ContainsAny(text, "\r\u0085\u2028\u2029%!") || !bytes.Equal([]byte(text), bytes.ToValidUTF8([]byte(text), nil)) {
		return 0, false // line breaks of YAML 1.1, directives and tags are beside the point
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	n := 0
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		if errors.Is(err, io.EOF) {
			return n, true
		}
		if err != nil {
			return 0, false
		}
		if len(node.Content) > 0 && (node.Content[0].Tag != "!!null" || node.Content[0].Value != "" || node.Content[0].Anchor != "") {
			n++
		}
	}
}
