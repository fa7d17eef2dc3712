package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"agentctl.dev/agentctl/plugins/sdk"
)

// maxAliases bounds the aliases of a YAML text: each is a copy where it is read.
const maxAliases = 1000

// validYAML reads every document of a text as nodes: no alias is followed, so that a few
// lines cannot become gigabytes.
func validYAML(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			aliases := 0
			err = checkNode(&n, &aliases)
		}
		if err != nil {
			return sdk.Errorf("YAML: %w", err)
		}
	}
}

// validMapping is validYAML for one document that is a mapping, or empty.
func validMapping(text []byte) error {
	if err := validYAML(text); err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return sdk.Errorf("YAML: %w", err)
	}
	if len(n.Content) > 0 && n.Content[0].Kind != yaml.MappingNode {
		return sdk.Errorf("front matter: it is not a mapping of names to values")
	}
	return nil
}

// checkNode refuses what readers of YAML refuse though it parses: a key that is there
// twice.
func checkNode(n *yaml.Node, aliases *int) error {
	if n.Kind == yaml.AliasNode {
		if *aliases++; *aliases > maxAliases {
			return fmt.Errorf("line %d: more than %d aliases", n.Line, maxAliases)
		}
		return nil
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				continue
			}
			if seen[key.Value] && key.Tag != "!!merge" {
				return fmt.Errorf("line %d: the key %q is there twice", key.Line, key.Value)
			}
			seen[key.Value] = true
		}
	}
	for _, c := range n.Content {
		if err := checkNode(c, aliases); err != nil {
			return err
		}
	}
	return nil
}
