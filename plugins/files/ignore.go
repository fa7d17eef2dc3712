package files

import (
	"bufio"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxIgnore is the largest .gitignore that is read.
const maxIgnore = 1 << 20

// ignores are the patterns in force in a folder, the nearest last.
type ignores []ignoreRule

// ignoreRule is a pattern, with what a part of each path that it matches must be: most patterns
// of most paths need not be asked.
type ignoreRule struct {
	gitignore.Pattern
	name, end string // the part is the name, or has the end
}

func parseIgnoreRule(line string, domain []string) ignoreRule {
	r := ignoreRule{Pattern: gitignore.ParsePattern(line, domain)}
	text := strings.TrimRight(strings.TrimPrefix(line, "!"), " ")
	for part := range strings.SplitSeq(text, "/") {
		switch end, isEnd := strings.CutPrefix(part, "*"); {
		case part == "":
		case !strings.ContainsAny(part, `*?[\`):
			return ignoreRule{Pattern: r.Pattern, name: part}
		case isEnd && end != "" && !strings.ContainsAny(end, `*?[\`):
			r.end = end
		}
	}
	return r
}

// canMatch reports whether the pattern might match a path.
func (r ignoreRule) canMatch(parts []string) bool {
	switch {
	case r.name != "":
		return slices.Contains(parts, r.name)
	case r.end != "":
		return slices.ContainsFunc(parts, func(part string) bool { return strings.HasSuffix(part, r.end) })
	}
	return true
}

// match reports whether git would ignore the path. No folder above it is ignored, or the
// walk would not be here.
func (g ignores) match(rel string, dir bool) bool {
	if len(g) == 0 {
		return false
	}
	parts := strings.Split(rel, "/")
	for _, p := range slices.Backward(g) {
		if !p.canMatch(parts) {
			continue
		}
		if r := p.Match(parts, dir); r != gitignore.NoMatch {
			return r == gitignore.Exclude
		}
	}
	return false
}

// inherited collects the rules of the folders above rel. A call that names an ignored
// folder is meant to see its content, so rules that ignore that folder do not count.
func (w *workspace) inherited(rel string) ignores {
	g := w.patterns(nil, ".git/info/exclude", nil)
	if rel == "." {
		return g
	}
	parts := strings.Split(rel, "/")
	for i := range parts {
		dir := path.Join(parts[:i]...)
		g = w.patterns(g, path.Join(dir, ".gitignore"), parts[:i])
		if g.match(path.Join(parts[:i+1]...), true) {
			g = nil
		}
	}
	return g
}

// extend adds the rules of a folder's own .gitignore to those from above.
func (w *workspace) extend(g ignores, rel string, all []entry) ignores {
	if !slices.ContainsFunc(all, func(e entry) bool { return e.name == ".gitignore" }) {
		return g
	}
	var domain []string
	if rel != "." {
		domain = strings.Split(rel, "/")
	}
	return w.patterns(g, path.Join(rel, ".gitignore"), domain)
}

// patterns returns g with the patterns of one file, which may be missing. The
// result never shares memory that a sibling folder could write to.
func (w *workspace) patterns(g ignores, rel string, domain []string) ignores {
	f, _, err := openRegular(w.root, rel)
	if err != nil {
		return g
	}
	defer f.Close()
	g = slices.Clip(g)
	sc := bufio.NewScanner(io.LimitReader(f, maxIgnore))
	for sc.Scan() {
		line := strings.TrimSuffix(strings.TrimPrefix(sc.Text(), string(bom)), "\r")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			g = append(g, parseIgnoreRule(line, domain))
		}
	}
	return g
}
