package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyser) redirects(list []*syntax.Redirect, sc *scope) {
	for _, r := range list {
		if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
			a.assigned(literal(strings.Trim(r.N.Value, "{}")), true, sc)
		}
		if r.Word != nil {
			a.visit(r.Word, sc)
		}
		if r.Hdoc != nil {
			a.visit(r.Hdoc, sc)
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
			if r.Op == syntax.DplIn && !isDescriptor(a.value(r.Word)) {
				a.dynamic("a descriptor that is not known")
			}
		case syntax.RdrIn:
			a.open(r.Word, sc, false)
		case syntax.RdrInOut:
			a.open(r.Word, sc, false)
			a.open(r.Word, sc, true)
		case syntax.DplOut:
			if !isDescriptor(a.value(r.Word)) {
				a.open(r.Word, sc, true)
			}
		default:
			// Every other operator writes; so would one of a later version.
			a.open(r.Word, sc, true)
		}
	}
}

func isDescriptor(w word) bool {
	return w.known && (w.text == "-" || isNumber(strings.TrimSuffix(w.text, "-")))
}

// open records a file that the shell opens.
func (a *analyser) open(target *syntax.Word, sc *scope, write bool) {
	if procSubst(target) {
		return
	}
	w := a.value(target)
	if w.known && w.text == "/dev/null" {
		return
	}
	paths := []string{Unknown}
	if (w.known || w.number) && !w.split {
		paths = a.paths(w.text, sc)
	}
	if slices.Contains(paths, Unknown) || w.glob && !w.bound {
		a.dynamic("a redirection to a path that is not known")
	}
	for _, path := range paths {
		a.opened(path, write)
	}
}

func (a *analyser) opened(path string, write bool) {
	if strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/") {
		parts := strings.Split(path, "/")
		a.network(len(parts) <= 3)
		if len(parts) > 3 {
			a.host(parts[3])
		}
	}
	a.facts.Redirects = append(a.facts.Redirects, Redirect{path, write})
	if write {
		a.facts.Writes = appendNew(a.facts.Writes, path)
	} else {
		a.facts.Reads = appendNew(a.facts.Reads, path)
	}
}
