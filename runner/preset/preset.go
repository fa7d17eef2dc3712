// Package preset holds agents that are shipped: an Agent names one in spec.preset and takes from it what it does not say itself.
package preset

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// files are texts only: a preset is read when somebody names it.
//
//go:embed */agent.yaml base/*.md
var files embed.FS

// Lookup returns the manifest of a preset, and what to call it in positions.
func Lookup(name string) (file string, manifest []byte, ok bool) {
	if !slices.Contains(Names(), name) {
		return "", nil, false
	}
	file = path.Join(name, "agent.yaml")
	text, err := files.ReadFile(file)
	return "(shipped)/presets/" + file, text, err == nil
}

// Names returns the names of all presets, sorted.
func Names() []string {
	found, err := fs.Glob(files, "*/agent.yaml")
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

// Base is the text with which the instructions of every preset begin, for a model of that
// name. Models of one family need the same reminders.
func Base(model string) string {
	text, err := files.ReadFile("base/" + Family(model) + ".md")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Family is the family of a model: claude, gemini, gpt or other.
func Family(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, f := range []struct {
		family string
		begin  []string
	}{
		{"claude", []string{"claude", "anthropic.claude"}},
		{"gemini", []string{"gemini", "gemma"}},
		{"gpt", []string{"gpt", "chatgpt", "codex", "o1", "o3", "o4"}},
	} {
		if slices.ContainsFunc(f.begin, func(b string) bool { return strings.HasPrefix(name, b) }) {
			return f.family
		}
	}
	return "other"
}
