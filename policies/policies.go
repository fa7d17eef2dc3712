// Package policies holds the policies that are shipped: an agent names one in policyRefs and needs no manifest of it.
package policies

import (
	"embed"
	"io/fs"
	"path"
	"slices"
)

// files are texts only: a policy is read when somebody names it.
//
//go:embed */policy.yaml
var files embed.FS

// Lookup returns the manifest of a shipped policy, and what to call it in positions.
func Lookup(name string) (file string, manifest []byte, ok bool) {
	if name == "" || !fs.ValidPath(name) {
		return "", nil, false
	}
	file = path.Join(name, "policy.yaml")
	text, err := files.ReadFile(file)
	if err != nil {
		return "", nil, false
	}
	return "(shipped)/policies/" + file, text, true
}

// Names returns the names of all shipped policies, sorted.
func Names() []string {
	found, err := fs.Glob(files, "*/policy.yaml")
	if err != nil { // the pattern is a constant
		return nil
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = path.Dir(f)
	}
	slices.Sort(names)
	return names
}
