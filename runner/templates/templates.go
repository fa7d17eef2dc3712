// Package templates writes an example of manifests/ into a folder, as the beginning of a set of manifests.
package templates

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/manifests"
)

// Template is an example that can be a beginning.
type Template struct {
	// Name of the template, of its folder and of its agent.
	Name string `json:"name"`
	// Alias is a shorter name; "" where there is none.
	Alias string `json:"alias,omitempty"`
	// Does says in one line what it is for.
	Does string `json:"does"`
}

// All lists the templates in the order in which people look for them.
func All() []Template {
	return []Template{
		{"pr-reviewer", "reviewer", "reviews a pull request and returns findings"},
		{"ci-failure-explainer", "triage", "explains why a job of a pipeline has failed"},
		{"dependency-bumper", "fixer", "adapts code to a new version of a dependency until the tests pass"},
		{"coding-agent", "", "has OpenCode do a task, takes over what it proposes and has the check pass"},
		{"docs-drift", "", "corrects documentation that no longer fits the code"},
		{"duplicate-finder", "mcp", "finds the tickets that report the same, through an MCP server"},
		{"flaky-test-triage", "", "repeats a test until it knows whether it is flaky or broken"},
		{"incident-triage", "", "puts together what is known when an alert comes in"},
		{"issue-labeller", "", "chooses labels for an issue, from those that exist"},
		{"release-notes", "", "writes the section of a changelog from commits"},
		{"research", "", "answers a question from documents, with a quote for each claim"},
		{"terraform-plan-review", "", "says what a Terraform plan destroys or opens"},
	}
}

// Pipelines lists what WriteOptions.CI can be.
func Pipelines() []string { return []string{"github", "gitlab"} }

// WriteOptions say what to write and where.
type WriteOptions struct {
	// Template is a name or an alias of All. Required.
	Template string
	// Dir is the folder to write; default agents/NAME. It must not hold anything yet.
	Dir string
	// CI is one of Pipelines: the pipeline is written to where it is run from, below
	// the current folder. Default: none.
	CI string
}

// Written is what was written.
type Written struct {
	Template string   `json:"template"`
	Dir      string   `json:"dir"`
	Files    []string `json:"files"`
	// Pipeline is the file that CI asked for, or "".
	Pipeline string `json:"pipeline,omitempty"`
}

// Write writes a template. It replaces no file. Its errors are a *reason.UsageError, or
// about the disk.
func Write(o WriteOptions) (*Written, error) {
	t, err := find(o.Template)
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		o.Dir = filepath.Join("agents", t.Name)
	}
	w := &Written{Template: t.Name, Dir: filepath.Clean(o.Dir)}
	project, err := read(t.Name, filepath.ToSlash(w.Dir))
	if err != nil {
		return nil, err
	}
	if o.CI != "" {
		if w.Pipeline, err = pipeline(o.CI, t.Name, w.Dir); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(w.Pipeline); err == nil {
			return nil, reason.Usagef("%s exists already", w.Pipeline).WithHint("move it away, or leave --ci out")
		}
	}
	if left, err := os.ReadDir(w.Dir); err == nil && len(left) > 0 {
		hint := "name another one: agentctl init " + t.Name + " FOLDER"
		if own := filepath.Join(w.Dir, "ci", o.CI+".yaml"); o.CI != "" {
			if _, err := os.Lstat(own); err == nil {
				hint = fmt.Sprintf("it holds the pipeline already: mkdir -p %s && cp %s %s", filepath.Dir(w.Pipeline), own, w.Pipeline)
			}
		}
		return nil, reason.Usagef("folder %s is not empty", w.Dir).WithHint(hint)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, reason.Usagef("folder %s: %w", w.Dir, err)
	}
	for _, f := range project {
		at := filepath.Join(w.Dir, filepath.FromSlash(f.path))
		if err := Create(at, f.text); err != nil {
			return nil, fmt.Errorf("write the template %s: %w", t.Name, err)
		}
		w.Files = append(w.Files, at)
		if w.Pipeline != "" && f.path == "ci/"+o.CI+".yaml" {
			if err := Create(w.Pipeline, f.text); err != nil {
				return nil, fmt.Errorf("write the pipeline of %s: %w", t.Name, err)
			}
		}
	}
	return w, nil
}

func find(name string) (Template, error) {
	var names []string
	for _, t := range All() {
		if name == t.Name || name != "" && name == t.Alias {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, reason.Usagef("there is no template %q", name).WithHint("one of " + strings.Join(names, ", "))
}

// pipeline is where a pipeline is run from.
func pipeline(ci, name, dir string) (string, error) {
	if !filepath.IsLocal(dir) {
		return "", reason.Usagef("a pipeline names the manifests by their folder in the repository, and %s is outside", dir).WithHint("begin in the root of the repository")
	}
	switch ci {
	case "github":
		return filepath.Join(".github", "workflows", name+".yaml"), nil
	case "gitlab":
		return filepath.Join(".gitlab", name+".yaml"), nil
	}
	return "", reason.Usagef("--ci is not %q", ci).WithHint("one of " + strings.Join(Pipelines(), ", "))
}

// file is one of a template. Its path has slashes and is relative to the folder.
type file struct {
	path string
	text []byte
}

// read returns the files of a template as they are for a set in a folder.
func read(name, dir string) ([]file, error) {
	from, err := manifests.Example(name)
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", name, err)
	}
	var all []file
	err = fs.WalkDir(from, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, p)
		all = append(all, file{p, fitted(p, text, name, dir)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", name, err)
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// outside matches a link of a page to another page that is not written.
var outside = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([^\]]*)\]\(\.\./[^)]*\)`) })

// fitted changes what names the folder of the example, and nothing else.
func fitted(p string, text []byte, name, dir string) []byte {
	switch {
	case path.Dir(p) == "ci":
		return []byte(strings.ReplaceAll(string(text), "agents/"+name, dir))
	case p == "README.md":
		s := strings.ReplaceAll(strings.ReplaceAll(string(text), "path/to/manifests/"+name, dir), "manifests/"+name, dir)
		return []byte(outside().ReplaceAllString(s, "$1"))
	}
	return text
}

// Create writes a file that does not exist yet, and the folders that it is in.
func Create(at string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(text, []byte("#!")) {
		mode = 0o755
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
