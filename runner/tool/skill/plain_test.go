package skill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"
)

// heads are such as skills have, and such as only look like them.
var heads = []string{
	"name: pdf\ndescription: Fills in forms. Use it when asked (or not), e.g. at 10:30.\nlicense: MIT\n",
	"name: \"pdf\"\ndescription: 'It says: more'\nmetadata:\n  version: \"1.0\"\n  author: someone\nallowed-tools: Bash(git:*) Read\n",
	"name: pdf\nname: twice\n", "metadata:\n  a: b\nname: x\n", "metadata:\n", "metadata: {}\n", "metadata:\n   a: b\n", "metadata:\n  a: b\n   c: d\n",
	"description: >-\n  folded\n  text\n", "description: first\n  second\n", "description: a # comment\n", "description: a: b\n", "description: a:\n", "a: &x b\n", "a: *x\n",
	"a: [b]\n", "a: - b\n", "a: b\tc\n", "a: b\u2028c\n", "a: b\u0085c\n", "a: \ufeffb\n", "a: b \n", "a:b\n", "a:\n", "...\n", "---\n", "a: b\n---\nc: d\n", "a: !!int 3\n",
	"a: 'b''c'\n", `a: "b\x41"` + "\n", "a: \"b\nc: d\"\n", "a: ? b\n", "? a\n", "-a: b\n", "a: b\r\n", "a: 'b' c\n", "a: 1.0\n", "a: null\n", "a: caf\u00e9 \u2014 \u65e5\n", "a: b\n\nc: d\n", "", "\n", "a: b", "a: b,c}\n", "  a: b\n",
	"name: pdf\n  metadata: x\n", "metadata:\n  a: \"\"\n", "a: \"\"\n", "a: x\x00\n", "a: x\xff\n", "a: \U0001f600\n", "a: \ufffd\n", "a: x\ufffe\n", "true: b\n", "null: b\n", "a: b\n  c: d\n",
}

// FuzzPlainFields compares what is read without YAML with what YAML reads.
func FuzzPlainFields(f *testing.F) {
	for _, head := range heads {
		f.Add(head)
	}
	f.Fuzz(func(t *testing.T, head string) {
		fields, ok := plainFields([]byte(head))
		if !ok {
			return
		}
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
			t.Fatalf("%q is %v, which is no YAML: %v", head, fields, err)
		}
		if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode || aliased(doc.Content[0]) {
			t.Fatalf("%q is %v, which is no mapping", head, fields)
		}
		var got, want Head
		for _, f := range fields {
			got.set(f.name, &f.value)
		}
		all := doc.Content[0].Content
		for i := 0; i+1 < len(all); i += 2 {
			want.set(all[i].Value, all[i+1])
			if i/2 >= len(fields) || fields[i/2].name != all[i].Value {
				t.Fatalf("%q: the fields are %v", head, fields)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(all) != 2*len(fields) {
			t.Errorf("%q (-yaml +plain):\n%s", head, diff)
		}
	})
}

// TestUsualHeadsNeedNoYAML: a start with many skills is quick because of that.
func TestUsualHeadsNeedNoYAML(t *testing.T) {
	for _, head := range heads[:3] {
		if _, ok := plainFields([]byte(head)); !ok {
			t.Errorf("%q is read as YAML", head)
		}
	}
	for _, head := range []string{"a: b: c\n", "a: >\n  b\n", "a: *b\n", "a: &b c\n", "a: [b]\n", "a: b\n  c\n", "? a\n", "a:\n  b: c\n", "", "text"} {
		if fields, ok := plainFields([]byte(head)); ok {
			t.Errorf("%q is read without YAML: %v", head, fields)
		}
	}
}
