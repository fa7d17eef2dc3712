package shell

import (
	"path"
	"slices"
	"strings"
)

// transfer judges what is copied, moved or linked, and where to.
func (a *analyser) transfer(kind string, ops []word, g *arguments, sc *scope) {
	target, sources, into := destination(kind, ops, g)
	if len(sources) == 0 {
		return // it fails
	}
	yes, no := a.looksFolder(target, sc)
	if into || !no && !g.has("--no-target-directory") {
		for _, s := range sources {
			a.intoFolder(s, target, g, sc)
		}
	}
	if !into && !yes {
		a.touchWord(target, "w", sc)
	}
	if g.has("-D") || g.has("--parents") {
		a.madeOnTheWay(target)
	}
	for _, s := range sources {
		if kind == "move" { // under its new name every user may read it
			a.touchWord(s, "rw", sc)
			a.deleted([]word{s}, sc)
			continue
		}
		a.touchWord(s, "r", sc)
	}
	a.disturbed = true
}

// destination separates where something goes from what goes there. into is set if it is
// certainly a folder.
func destination(kind string, ops []word, g *arguments) (target word, sources []word, into bool) {
	if g.has("--target-directory") {
		at := slices.IndexFunc(g.values, func(v setting) bool { return v.name == "--target-directory" })
		if at < 0 {
			return word{}, nil, false
		}
		return g.values[at].value, ops, true
	}
	switch n := len(ops); {
	case n > 0 && ops[n-1].known && ops[n-1].glob && !ops[n-1].bound: // its last match is where they go
		return ops[n-1], ops, false
	case n == 1 && kind == "link":
		return literal("."), ops, true
	case n < 2:
		return word{}, nil, false
	case n > 2 && kind != "link", strings.HasSuffix(ops[n-1].text, "/"):
		return ops[n-1], ops[:n-1], true
	default:
		return ops[n-1], ops[:n-1], false
	}
}

// looksFolder reports whether a word certainly names a folder, or certainly does not.
func (a *analyser) looksFolder(w word, sc *scope) (yes, no bool) {
	if !w.known || w.glob || sc.here.unknown || w.text == "" {
		return false, false
	}
	yes, no = true, a.files.IsFolder != nil && !a.disturbed
	for _, dir := range a.joins(sc.here, w.text).at {
		is := slices.Contains(standing, dir) || a.stands(dir)
		yes, no = yes && is, no && !is
	}
	return yes, no
}

// intoFolder records the file that a source becomes in a folder. Whether the target is a
// folder may show only when the command runs.
func (a *analyser) intoFolder(source, target word, g *arguments, sc *scope) {
	switch {
	case !target.known:
		a.unknownPath(true)
		return
	case !source.known:
		a.write(strings.TrimSuffix(target.text, "/")+"/"+someName, sc)
		return
	}
	name := path.Base(source.text)
	if g.has("--parents") {
		name = source.text
	}
	if source.glob && !source.bound || name == ".." || name == "." || name == "/" {
		a.write(target.text, sc)
		if name == ".." || name == "." || name == "/" {
			return
		}
	}
	a.write(strings.TrimSuffix(target.text, "/")+"/"+name, sc)
}

// synchronised judges sources and a target, any of which may be on another host; a single
// source is only listed.
func (a *analyser) synchronised(ops []word, g *arguments, sc *scope) {
	last := len(ops) - 1
	for i, w := range ops {
		if i == last && i > 0 {
			a.remotely(w, "write", sc)
			if g.has("--delete") {
				a.deleted([]word{w}, sc)
			}
			return
		}
		a.remotely(w, "read", sc)
		if w.known && !strings.Contains(w.text, ":") {
			a.tree([]word{w}, sc)
			if g.has("--remove-source-files") {
				a.setting("rsync", setting{kind: "delete", value: w}, sc)
			}
		}
	}
}

// madeOnTheWay notes that folders in front of dots may be made for a path: a/../b makes a.
func (a *analyser) madeOnTheWay(w word) {
	if strings.Contains("/"+strings.TrimLeft(w.text, "./")+"/", "/../") {
		a.dynamic("folders on the way to " + w.text + " may be made")
	}
}
