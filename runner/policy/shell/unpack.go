package shell

import (
	"path"
	"slices"
	"strconv"
)

// Rewrite is a folder in which a command makes or changes files that its arguments do not
// name: what an archive holds, what a patch names, what git has kept.
type Rewrite struct {
	// Dir is the folder, as in Writes.
	Dir string `json:"dir"`
	// From is the file in which their names are; "" if no file has them, or if the options of
	// the command change them in a way that is not followed.
	From string `json:"from,omitempty"`
	// Strip is how many elements of each name are dropped from its beginning.
	Strip int `json:"strip,omitempty"`
	// Tracked: only files that git tracks are changed.
	Tracked bool `json:"tracked,omitempty"`
}

// plainly are the options with which the names in a file are those of the files that are
// made.
var plainly = map[string][]string{
	"tar":       {"--extract", "--file", "--directory", "--gzip", "--bzip2", "--verbose", "--preserve-permissions", "--touch", "--strip-components", "--auto-compress", "--no-same-owner", "-o"},
	"unzip":     {"-d", "-o", "-n", "-q"},
	"patch":     {"--strip", "--input", "--forward", "--quiet", "--batch", "--force"},
	"git apply": {"-p", "--verbose", "--quiet", "--index", "--3way", "-C", "--whitespace"},
}

// rewrites notes that a command makes files in a folder that only the run can tell.
func (a *analyser) rewrites(name string, folder word, g *arguments, sc *scope) {
	a.disturbed = true
	if name == "gtar" {
		name = "tar"
	}
	r := Rewrite{Tracked: slices.Contains([]string{"git checkout", "git switch", "git restore", "git reset", "git stash", "git stash push", "git stash save", "git merge", "git pull"}, name)}
	r.From, r.Strip = a.namesOf(name, g, sc)
	if !r.Tracked {
		a.unpacks = true
	}
	if !folder.known && !folder.number {
		a.unknownPath(true)
		return
	}
	a.write(folder.text, sc)
	for _, dir := range a.paths(folder.text, sc) {
		r.Dir = dir
		if !slices.Contains(a.facts.Rewrites, r) {
			a.facts.Rewrites = append(a.facts.Rewrites, r)
		}
	}
}

// namesOf finds the file that names what a command makes, and how many elements of each
// name are dropped.
func (a *analyser) namesOf(name string, g *arguments, sc *scope) (from string, strip int) {
	plain, ok := plainly[name]
	if !ok || g.unknown != "" || g.open || slices.ContainsFunc(g.options, func(o string) bool { return !slices.Contains(plain, o) }) {
		return "", 0
	}
	ops := g.operands
	file := word{}
	switch name {
	case "tar":
		file = g.valueOf("--file")
		if len(ops) > 0 {
			return "", 0
		}
	case "unzip":
		if len(ops) != 1 {
			return "", 0
		}
		if file = ops[0]; file.known && path.Ext(file.text) == "" {
			file.text += ".zip"
		}
	case "git apply":
		if strip = 1; len(ops) != 1 {
			return "", 0
		}
		file = ops[0]
	case "patch":
		if file = g.valueOf("--input"); len(ops) > 0 || !g.has("--strip") {
			return "", 0
		}
	}
	if v := g.valueOf("--strip-components"); v.known {
		strip = number(v.text)
	}
	if v := g.valueOf("--strip"); v.known {
		strip = number(v.text)
	}
	if v := g.valueOf("-p"); v.known {
		strip = number(v.text)
	}
	if !file.known || file.glob || file.text == "" || file.text == "-" || strip < 0 {
		return "", 0
	}
	if at := a.paths(file.text, sc); len(at) == 1 && at[0] != Unknown {
		return at[0], strip
	}
	return "", 0
}

// number is -1 for what is none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// valueOf is the last value of an option, by the last of its names.
func (g *arguments) valueOf(option string) (value word) {
	for _, v := range g.values {
		if v.name == option {
			value = v.value
		}
	}
	return value
}
