package manifest

import (
	"bytes"
	"math"

	"go.yaml.in/yaml/v3"
)

// maxExpanded bounds the values of one file once its aliases are expanded: the library
// expands them without a limit.
const maxExpanded = 1 << 20

// expands reports whether the expanded aliases of a file exceed the limit. A text that is
// not YAML is left to the library.
func expands(text []byte) bool {
	if !bytes.ContainsRune(text, '*') {
		return false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	total := 0
	for {
		var n yaml.Node
		if decoder.Decode(&n) != nil { // io.EOF, or a mistake
			return false
		}
		if total += size(&n, map[*yaml.Node]int{}); total > maxExpanded {
			return true
		}
	}
}

// size is the number of values in a node, of which those in known were counted before. A
// node that contains itself is infinitely large.
func size(n *yaml.Node, known map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if s, ok := known[n]; ok {
		return s
	}
	known[n] = math.MaxInt32 // while it is being counted
	sum := 1
	for _, c := range n.Content {
		sum = min(sum+size(c, known), math.MaxInt32)
	}
	known[n] = sum
	return sum
}
