package admission

import (
	"maps"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
)

// Entry is an object and the document that declares it.
type Entry[T any] struct {
	Object *T
	Doc    *manifest.Document
}

// Catalog holds the objects of a set by kind and name. It is not changed after
// admission, and may then be used by many goroutines.
type Catalog struct {
	Agents     map[string]Entry[v1alpha1.Agent]
	Models     map[string]Entry[v1alpha1.Model]
	Tools      map[string]Entry[v1alpha1.Tool]
	Policies   map[string]Entry[v1alpha1.Policy]
	Skills     map[string]Entry[v1alpha1.Skill]
	Workspaces map[string]Entry[v1alpha1.Workspace]
	Runs       map[string]Entry[v1alpha1.Run]
	Tests      map[string]Entry[v1alpha1.Test]
	// Cases are the test cases next to policies, by the name of the policy.
	Cases map[string][]Entry[v1alpha1.Policy]

	// kinds are those of the sources of tools.
	kinds tool.Kinds
	// images returns the files of an image, and unpacked is what it has returned.
	images    func(ref string) (dir string, err error)
	unpacking sync.Mutex
	unpacked  map[string]unpacked
	// unnamed are runs that only have a generateName.
	unnamed []Entry[v1alpha1.Run]
	// compiled policies by name; ambiguous when two tools share a call name, so
	// that they were compiled against one of them only.
	compiled map[string]*policy.Compiled
	// shipped are the policies that no manifest declares.
	shipped   map[string]bool
	ambiguous bool
}

func newCatalog() *Catalog {
	return &Catalog{
		Agents:     map[string]Entry[v1alpha1.Agent]{},
		Models:     map[string]Entry[v1alpha1.Model]{},
		Tools:      map[string]Entry[v1alpha1.Tool]{},
		Policies:   map[string]Entry[v1alpha1.Policy]{},
		Skills:     map[string]Entry[v1alpha1.Skill]{},
		Workspaces: map[string]Entry[v1alpha1.Workspace]{},
		Runs:       map[string]Entry[v1alpha1.Run]{},
		Tests:      map[string]Entry[v1alpha1.Test]{},
		Cases:      map[string][]Entry[v1alpha1.Policy]{},
		compiled:   map[string]*policy.Compiled{},
		shipped:    map[string]bool{},
		unpacked:   map[string]unpacked{},
	}
}

// put adds an object; it returns the document that has the name already.
func (c *Catalog) put(d *manifest.Document) *manifest.Document {
	switch obj := d.Object.(type) {
	case *v1alpha1.Agent:
		return enter(c.Agents, obj, d)
	case *v1alpha1.Model:
		return enter(c.Models, obj, d)
	case *v1alpha1.Tool:
		return enter(c.Tools, obj, d)
	case *v1alpha1.Policy:
		return enter(c.Policies, obj, d)
	case *v1alpha1.Skill:
		return enter(c.Skills, obj, d)
	case *v1alpha1.Workspace:
		return enter(c.Workspaces, obj, d)
	case *v1alpha1.Run:
		return enter(c.Runs, obj, d)
	case *v1alpha1.Test:
		return enter(c.Tests, obj, d)
	}
	return nil
}

func enter[T any](m map[string]Entry[T], obj *T, d *manifest.Document) *manifest.Document {
	if before, ok := m[d.Name]; ok {
		return before.Doc
	}
	m[d.Name] = Entry[T]{obj, d}
	return nil
}

// names are the names that lead to something, sorted.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
