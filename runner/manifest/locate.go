package manifest

import (
	"bytes"
	"strconv"
	"sync"

	yaml "go.yaml.in/yaml/v3"
)

// text is the source of a document. It is parsed into nodes only when the position of a
// field is needed, which a manifest without mistakes never needs.
type text struct {
	file string
	data []byte
	line int
	// cases: paths of a policy are searched in a list of cases.
	cases bool
	root  func() *yaml.Node
	// lines are made when the first finding shows one.
	lines func() [][]byte
	// words reports whether the text holds a word that YAML 1.1 reads as a boolean. It is
	// needed for every free-form value, so the text is searched once.
	words func() bool
}

func newText(file string, c chunk) *text {
	t := &text{file: file, data: c.data, line: c.line}
	t.root = sync.OnceValue(func() *yaml.Node {
		var n yaml.Node
		if err := yaml.Unmarshal(c.data, &n); err != nil || len(n.Content) == 0 {
			return nil
		}
		return n.Content[0]
	})
	t.words = sync.OnceValue(func() bool { return words(c.data) })
	t.lines = sync.OnceValue(func() [][]byte { return bytes.Split(c.data, []byte("\n")) })
	return t
}

// found is what a path leads to. key is nil for items of a list, and both are
// those of the nearest parent when the path leads nowhere.
type found struct {
	key, value *yaml.Node
	exact      bool
}

func (t *text) find(path string) found {
	n := t.root()
	if n == nil {
		return found{}
	}
	if t.cases {
		path = written(path)
	}
	at := found{value: n, exact: true}
	for _, s := range parsePath(path) {
		key, value := child(at.value, s)
		if value == nil {
			at.exact = false
			return at
		}
		at = found{key: key, value: value, exact: true}
	}
	return at
}

func child(n *yaml.Node, s step) (key, value *yaml.Node) {
	n = deref(n)
	switch {
	case s.list && n.Kind == yaml.SequenceNode:
		if s.index >= 0 && s.index < len(n.Content) {
			return nil, n.Content[s.index]
		}
	case !s.list && n.Kind == yaml.MappingNode:
		return member(n, s.key, 0)
	}
	return nil, nil
}

// member finds a key in a mapping, and then in what "<<" merges into it.
func member(n *yaml.Node, name string, depth int) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && (k.Value == name || boolKey(k, name)) {
			return k, n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content) && depth < MaxDepth; i += 2 {
		if n.Content[i].Tag != "!!merge" {
			continue
		}
		merged := deref(n.Content[i+1])
		sources := []*yaml.Node{merged}
		if merged.Kind == yaml.SequenceNode {
			sources = merged.Content
		}
		for _, src := range sources {
			if src = deref(src); src.Kind == yaml.MappingNode {
				if k, v := member(src, name, depth+1); v != nil {
					return k, v
				}
			}
		}
	}
	return nil, nil
}

// boolKey reports whether a plain key such as on was read as name, "true".
func boolKey(k *yaml.Node, name string) bool {
	return (name == "true" || name == "false") && k.Style == 0 && strconv.FormatBool(truth(k.Value)) == name && boolWord(k.Value)
}

func deref(n *yaml.Node) *yaml.Node {
	for range MaxDepth {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}

// position turns a node's place in the document into one in the file.
func (t *text) position(n *yaml.Node) Position {
	if n == nil {
		return Position{File: t.file, Line: t.first(), Col: 1}
	}
	return Position{File: t.file, Line: t.line + n.Line - 1, Col: n.Column}
}

// first is the line on which the document's content begins.
func (t *text) first() int {
	for i, l := range t.lines() {
		l = bytes.TrimRight(l, "\r")
		if content(l) && !border(l, "---") {
			return t.line + i
		}
	}
	return t.line
}

// lineAt returns a line of the file.
func (t *text) lineAt(line int) string {
	lines := t.lines()
	if i := line - t.line; i >= 0 && i < len(lines) {
		return string(bytes.TrimRight(lines[i], "\r"))
	}
	return ""
}

// boolWord reports whether YAML 1.1 reads a plain word as a boolean although people mean
// the word, such as yes or off; true and false are not among them.
func boolWord(s string) bool {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return true
	}
	return false
}

func truth(s string) bool {
	return s != "" && (s[0] == 'y' || s[0] == 'Y' || s == "on" || s == "On" || s == "ON")
}
