package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// manifest writes the manifest of a policy of shell-attacks into the folder of the
// measurement. Names after a + are further policies of its agent.
func (b *bench) manifest(name string) (string, error) {
	base, more, _ := strings.Cut(name, "+")
	text, err := os.ReadFile(b.corpus("shell-attacks/policies/" + base + ".yaml"))
	if err != nil {
		return "", err
	}
	result := string(text)
	if more != "" {
		var refs strings.Builder
		for m := range strings.SplitSeq(more, "+") {
			fmt.Fprintf(&refs, ", {name: %s}", m)
		}
		head, tail, ok := strings.Cut(result, "policyRefs: [")
		own, rest, closed := strings.Cut(tail, "]")
		if !ok || !closed {
			return "", fmt.Errorf("policy %s: %s.yaml has no policyRefs to add to", name, base)
		}
		result = head + "policyRefs: [" + own + refs.String() + "]" + rest
	}
	return b.writeManifest(name, result)
}

// writeManifest writes a manifest next to, not into, the workspaces.
func (b *bench) writeManifest(name, text string) (string, error) {
	dir := filepath.Join(b.dir, "manifests", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "agent.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}
