// Package opencode carries a configuration of OpenCode over into manifests.
package opencode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/templates"
)

// Folder is the default of the folder that Write writes.
const Folder = "agents/opencode"

// Carried is a part of the configuration that stands in a manifest.
type Carried struct {
	// At is its place in the configuration, as a JSON Pointer.
	At string `json:"at"`
	// To says what it has become.
	To string `json:"to"`
	// Stricter says where the manifest allows less; "" if it means the same.
	Stricter string `json:"stricter,omitempty"`
}

// Left is a part of the configuration that stands in no manifest.
type Left struct {
	At  string `json:"at"`
	Why string `json:"why"`
}

// Result is what became of a configuration.
type Result struct {
	Dir     string    `json:"dir"`
	Carried []Carried `json:"carried"`
	Left    []Left    `json:"left"`
	Files   []string  `json:"files"`
}

// Write reads the configuration in a file and writes manifests into a folder; "" is
// Folder. It replaces no file. Its errors are a *reason.UsageError, or about the disk.
func Write(from, dir string) (*Result, error) {
	if dir == "" {
		dir = Folder
	}
	dir = filepath.Clean(dir)
	in, err := readFile(from)
	if err != nil {
		return nil, reason.Usagef("read the configuration: %w", err)
	}
	root, err := os.OpenRoot(filepath.Dir(from))
	if err != nil {
		return nil, reason.Usagef("read the folder of the configuration: %w", err)
	}
	defer func() { _ = root.Close() }()
	c, err := convert(in, root.FS())
	if err != nil {
		if _, is := errors.AsType[*mistake](err); is {
			return nil, reason.Usagef("%s:%w", from, err)
		}
		return nil, reason.Usagef("%s: %w", from, err)
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return nil, reason.Usagef("folder %s is not empty", dir).WithHint("name another one: agentctl init --from " + from + " FOLDER")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, reason.Usagef("folder %s: %w", dir, err)
	}
	r := &Result{Dir: dir, Carried: c.carried, Left: c.left}
	for _, f := range c.files {
		at := filepath.Join(dir, f.name)
		if err := templates.Create(at, f.text); err != nil {
			return nil, fmt.Errorf("write the manifests of %s: %w", from, err)
		}
		r.Files = append(r.Files, at)
	}
	return r, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// file is a manifest, by its name in the folder.
type file struct {
	name string
	text []byte
}

// conversion is a configuration on its way into manifests.
type conversion struct {
	root  *value
	files []file
	// beside is the folder of the configuration.
	beside  fs.FS
	servers []server
	models  models
	carried []Carried
	left    []Left
	err     error
}

// known are the members that are carried over, and those that mean nothing here.
func known() []string {
	return []string{"$schema", "agent", "mode", "model", "small_model", "mcp", "permission", "tools", "provider", "instructions", "command"}
}

func convert(in []byte, beside fs.FS) (*conversion, error) {
	root, err := read(in)
	if err != nil {
		return nil, err
	}
	if root.kind != object {
		return nil, &mistake{root.line, root.column, "an object is expected"}
	}
	c := &conversion{root: root, beside: beside, carried: []Carried{}, left: []Left{}}
	c.leave("", "what no entry decides, OpenCode allows, and a Policy judges by the risk of the call: see spec.default")
	c.mcp()
	c.agents()
	for _, m := range root.members {
		if !slices.Contains(known(), m.key) {
			c.leave("/"+escape(m.key), without(m.key))
		}
	}
	return c, c.err
}

// without says why a member of the configuration is in no manifest.
func without(key string) string {
	switch key {
	case "plugin":
		return "code of OpenCode: write a tool, docs/plugins.md"
	case "skills":
		return "name folders in the agent's skillFolders: docs/skills.md"
	case "lsp", "formatter":
		return "see the agent's diagnostics: agentctl explain agent.spec.diagnostics"
	case "default_agent":
		return "name the agent with --agent"
	case "compaction":
		return "see the agent's context: agentctl explain agent.spec.context"
	}
	return "has no counterpart in a manifest"
}

func (c *conversion) carry(at, to, stricter string) {
	if n := (Carried{at, to, stricter}); !slices.Contains(c.carried, n) {
		c.carried = append(c.carried, n)
	}
}

func (c *conversion) leave(at, why string) {
	if n := (Left{at, why}); !slices.Contains(c.left, n) {
		c.left = append(c.left, n)
	}
}

// unreadable is a part without which the others would mean something else.
func (c *conversion) unreadable(at, what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s %s", at, what)
	}
}

// write adds a file of objects.
func (c *conversion) write(name, comment string, objects ...map[string]any) {
	var b strings.Builder
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		} else if comment != "" {
			b.WriteString("# " + comment + "\n")
		}
		doc, err := yaml.Marshal(o)
		if err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("write %s: %w", name, err))
		}
		b.Write(doc)
	}
	c.files = append(c.files, file{name, []byte(b.String())})
}

func manifest(kind, name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}
}

// escape is a name as a part of a JSON Pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// words returns the text of a value that is one; an empty one is none.
func words(v *value) (string, bool) {
	if v == nil || v.kind != text || v.text == "" {
		return "", false
	}
	return v.text, true
}

// slug is a name as objects have it, which none of the others has.
func slug(name string, taken []string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if n := b.Len(); n > 0 && b.String()[n-1] != '-' {
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	base := strings.Trim(b.String(), "-")
	if base == "" {
		base = "unnamed"
	}
	s := base
	for i := 2; slices.Contains(taken, s); i++ {
		s = fmt.Sprintf("%s-%d", base, i)
	}
	return s
}

// substituted returns the name in a text that is {env:NAME} as a whole, and whether the
// text holds a substitution at all.
func substituted(s string) (env string, holds bool) {
	holds = strings.Contains(s, "{env:") || strings.Contains(s, "{file:")
	name, ok := strings.CutPrefix(s, "{env:")
	if name, ok2 := strings.CutSuffix(name, "}"); ok && ok2 && variable(name) {
		return name, true
	}
	return "", holds
}

// variable reports whether a name can be that of a variable.
func variable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
