package policy

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
)

// Limits of the patterns of one call: what each may stand for, and what is read
// to find out about all of them.
const (
	patternFiles   = 200
	patternEntries = 20_000
)

// matching returns the files that a shell makes of an absolute pattern. All is
// false when there are too many to say; read counts what all patterns have cost.
func matching(pattern string, read *int) (names []string, all bool) {
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
			entries, whole := entriesOf(dir, patternEntries-*read)
			*read += len(entries) + 1
			if !whole {
				return nil, false
			}
			for _, name := range entries {
				if fits(e, name) {
					next = append(next, strings.TrimSuffix(dir, "/")+"/"+name)
				}
			}
			if len(next) > patternFiles {
				return nil, false
			}
		}
		found = next
	}
	return found, true
}

// entriesOf returns the names in a folder, at most limit of them. What cannot be
// read has none, for the shell neither.
func entriesOf(dir string, limit int) (names []string, whole bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, true
	}
	defer f.Close()
	names, err = f.Readdirnames(max(limit, 0) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, true
	}
	return names, len(names) <= limit
}

// fits says whether a shell's pattern can stand for a name. What a bracket
// means depends on the locale, so that from one on everything fits.
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
