package policy

import (
	"path"
	"strings"
)

// Limits of the patterns of one call: how many names each may match, and how many are read
// for all of them.
const (
	patternFiles   = 200
	patternEntries = 20_000
)

// matching returns the files that an absolute pattern of a shell matches. Unknown is why
// not all of them can be named, "" if they can; read counts what all patterns have cost.
func (w Workspace) matching(pattern string, read *int) (names []string, unknown string) {
	found := []string{"/"}
	for e := range strings.SplitSeq(pattern, "/") {
		if e == "" || e == "." {
			continue
		}
		if !strings.ContainsAny(e, "*?[") {
			// Dots stay: they are resolved behind links.
			for i := range found {
				found[i] = strings.TrimSuffix(found[i], "/") + "/" + e
			}
			continue
		}
		var next []string
		for _, dir := range found {
			in := w.list(dir, patternEntries-*read)
			*read += len(in.list) + 1
			switch {
			case in.outside:
				unknown = "a pattern outside the workspace, in a folder that is not listed"
			case !in.whole:
				return nil, tooMany
			}
			for _, entry := range in.list {
				if fits(e, entry.Name()) {
					next = append(next, strings.TrimSuffix(dir, "/")+"/"+entry.Name())
				}
			}
			if len(next) > patternFiles {
				return nil, tooMany
			}
		}
		found = next
	}
	return found, unknown
}

const tooMany = "a pattern that stands for too many files"

// fits reports whether a pattern of a shell can match a name. The meaning of a bracket
// depends on the locale, so from a bracket on everything matches.
func fits(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	if fixed, _, bracket := strings.Cut(pattern, "["); bracket {
		pattern = fixed + "*"
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, `\`, `\\`), name)
	return ok || err != nil
}
