package admission

import (
	"strings"

	"agentctl.dev/agentctl/runner/manifest"
)

// edge is a reference from one object to another, and where it is written.
type edge struct {
	to   string
	doc  *manifest.Document
	path string
}

// graph holds the references that must not come back to where they began.
type graph map[string][]edge

// cycles reports models that fall back to themselves, and warns of agents that start
// themselves through subagents or tools: limits.maxDepth bounds them.
func (a *admitter) cycles() {
	g := graph{}
	var order []string
	node := func(kind, name string) string { return kind + "/" + name }
	for _, name := range names(a.catalog.Agents) {
		e := a.catalog.Agents[name]
		id := node("agent", name)
		order = append(order, id)
		for i, ref := range e.Object.Spec.Subagents {
			g[id] = append(g[id], edge{node("agent", ref.Name), e.Doc, manifest.Index("spec.subagents", i) + ".name"})
		}
		for i, t := range e.Object.Spec.Tools {
			g[id] = append(g[id], edge{node("tool", t.Name), e.Doc, manifest.Index("spec.tools", i) + ".name"})
		}
	}
	for _, name := range names(a.catalog.Tools) {
		e := a.catalog.Tools[name]
		if f, _ := a.opts.Tools.Facts(&e.Object.Spec); f.Agent != "" { // what is wrong is found by tool
			id := node("tool", name)
			g[id] = append(g[id], edge{node("agent", f.Agent), e.Doc, "spec.source." + f.Kind + ".name"})
		}
	}
	for _, name := range names(a.catalog.Models) {
		e := a.catalog.Models[name]
		id := node("model", name)
		order = append(order, id)
		for i, ref := range e.Object.Spec.Fallbacks {
			g[id] = append(g[id], edge{node("model", ref.Name), e.Doc, manifest.Index("spec.fallbacks", i) + ".name"})
		}
	}
	w := walker{graph: g, state: map[string]int{}}
	for _, id := range order {
		w.visit(id)
	}
	a.found = append(a.found, w.found...)
}

const (
	visiting = 1
	visited  = 2
)

// walker searches depth first; an edge to a node on its own path closes a
// cycle.
type walker struct {
	graph graph
	state map[string]int
	path  []string
	found manifest.Findings
}

func (w *walker) visit(id string) {
	w.state[id] = visiting
	w.path = append(w.path, id)
	for _, e := range w.graph[id] {
		switch w.state[e.to] {
		case 0:
			w.visit(e.to)
		case visiting:
			w.found = append(w.found, cyclic(e, w.cycle(e.to)))
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.state[id] = visited
}

func cyclic(e edge, cycle string) manifest.Finding {
	if strings.HasPrefix(e.to, "model/") {
		return e.doc.Errorf(e.path, "the reference is cyclic: %s", cycle)
	}
	return e.doc.Warnf(e.path, "the agent starts itself: %s; only limits.maxDepth of the agent that a run starts ends that", cycle)
}

func (w *walker) cycle(to string) string {
	begin := 0
	for i, id := range w.path {
		if id == to {
			begin = i
		}
	}
	return strings.Join(append(append([]string(nil), w.path[begin:]...), to), " → ")
}
