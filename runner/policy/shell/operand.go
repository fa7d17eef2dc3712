package shell

import (
	"path"
	"slices"
	"strings"
)

// generic judges a program by its entry in the table.
func (a *analyser) generic(p program, args []word, sc *scope) {
	named := a.named
	operands, hits := a.options(p.flags, args, sc)
	if p.net {
		defer func() {
			a.network(a.named == named || slices.ContainsFunc(p.anywhere, func(option string) bool { return hits[option] }))
		}()
	}
	if p.inert {
		return
	}
	if slices.ContainsFunc(p.lists, func(option string) bool { return hits[option] }) {
		a.dynamic("the names of files stand in what the program reads")
	}
	if p.saves && (hits["resolve"] || hits["connect-to"]) {
		a.dynamic("an option that decides which host is reached")
	}
	mode := p.ops
	if mode == "cp" && p.net {
		for _, w := range operands {
			a.remote(w.text)
		}
	}
	if mode == "pr" && hasPattern(hits) {
		mode = "r"
	}
	switch {
	case hits["W"]:
		mode = "rw"
	case mode == "cp" && (hits["t"] || hits["target-directory"]):
		mode = "r" // all of them are sources
	case mode == "mv" && (hits["t"] || hits["target-directory"]):
		mode = "rw"
		a.deleted(operands, sc)
	}
	if mode == "pw" && modeOption(hits) {
		mode = "w" // the mode is written like an option: chmod -x file
	}
	a.operands(mode, operands, sc)
	if slices.ContainsFunc(p.trees, func(option string) bool { return option == "" || hits[option] }) {
		a.trees(p, mode, operands, sc)
	}
	if p.deletes {
		a.deleted(operands, sc)
	}
	if p.writes != "" && !slices.ContainsFunc(p.instead, func(option string) bool { return hits[option] }) {
		a.write(p.writes, sc)
	}
	if hits["O"] && p.saves || hits["remote-name"] || hits["remote-name-all"] {
		a.saved(operands, hits, sc)
	}
}

// modeOption reports whether an option is the mode of chmod.
func modeOption(hits map[string]bool) bool {
	for _, letter := range []string{"r", "w", "x", "X", "s", "t"} {
		if hits[letter] {
			return true
		}
	}
	return hits["reference"]
}

// hasPattern reports whether a search program got its pattern as an option, so that every
// operand is a file.
func hasPattern(hits map[string]bool) bool {
	return hits["e"] || hits["regexp"] || hits["f"] || hits["file"] || hits["from-file"] || hits["files"]
}

// trees records the folders that a program takes with all that is in them.
func (a *analyser) trees(p program, mode string, operands []word, sc *scope) {
	switch n := len(operands); {
	case (mode == "pr" || mode == "wr") && n > 0:
		operands = operands[1:]
	case (mode == "cp" || mode == "mv") && n > 1:
		operands = operands[:n-1] // the last one is where they go
	}
	if len(operands) == 0 && p.here {
		operands = []word{{text: ".", known: true}}
	}
	a.tree(operands, sc)
}

func (a *analyser) tree(folders []word, sc *scope) {
	for _, w := range folders {
		if w.known || w.number { // what is not known has made the script dynamic
			a.facts.Trees = a.touch(a.facts.Trees, w.text, sc)
		}
	}
}

// saved records the files that a download names after its addresses.
func (a *analyser) saved(addresses []word, hits map[string]bool, sc *scope) {
	for _, w := range addresses {
		name := path.Base(w.text)
		if !w.known || w.glob || hits["J"] || hits["remote-header-name"] || hits["output-dir"] || strings.ContainsAny(name, "?#{}[]") || name == "/" {
			name = "." // the server, or a pattern, decides
		}
		a.write(name, sc)
	}
}

// deleted records that operands, written before, are removed.
func (a *analyser) deleted(ops []word, sc *scope) {
	for _, w := range ops {
		if w.known || w.number {
			a.facts.Deletes = a.touch(a.facts.Deletes, w.text, sc)
		} else {
			a.facts.Deletes = appendNew(a.facts.Deletes, Unknown)
		}
	}
}

// operands records what a program does with the arguments that are not options.
func (a *analyser) operands(mode string, ops []word, sc *scope) {
	switch mode {
	case "": // no paths, but what is not known may be an option
		for _, w := range ops {
			if !w.known && !w.number {
				a.dynamic("an argument is not known")
			}
		}
		return
	case "url":
		for _, w := range ops {
			a.url(w)
		}
		return
	case "port": // an address and a port
		for _, w := range ops {
			if !w.known || w == ops[0] || !isNumber(w.text) {
				a.url(w)
			}
		}
		return
	case "pr": // a pattern, then files
		if len(ops) > 0 {
			if !ops[0].known && ops[0].split {
				a.dynamic("an argument is not known")
			}
			ops = ops[1:]
		}
		mode = "r"
	case "pw": // a mode or an owner, then files
		if len(ops) > 0 {
			ops = ops[1:]
		}
		mode = "w"
	case "wr": // an output, then inputs
		if len(ops) > 0 {
			a.touchWord(ops[0], "w", sc)
			ops = ops[1:]
		}
		mode = "r"
	case "ro": // an input and an output
		if len(ops) > 1 {
			a.touchWord(ops[1], "w", sc)
			ops = ops[:1]
		}
		mode = "r"
	case "cp", "mv":
		a.copies(mode, ops, sc)
		return
	}
	for _, w := range ops {
		a.touchWord(w, mode, sc)
	}
}

func (a *analyser) copies(mode string, ops []word, sc *scope) {
	for i, w := range ops {
		switch {
		case len(ops) == 1: // ln makes its link here
			a.touchWord(w, "rw", sc)
		case i == len(ops)-1:
			a.touchWord(w, "w", sc)
		case mode == "mv":
			// Under its new name every user may read it.
			a.touchWord(w, "rw", sc)
			a.deleted([]word{w}, sc)
		default:
			a.touchWord(w, "r", sc)
		}
	}
}

func (a *analyser) touchWord(w word, mode string, sc *scope) {
	if w.proc {
		return
	}
	for _, m := range mode {
		switch {
		case !w.known && !w.number:
			a.unknownPath(m == 'w')
		case m == 'w':
			a.write(w.text, sc)
		default:
			a.read(w.text, sc)
		}
	}
}

func (a *analyser) url(w word) {
	if w.shown() == Unknown {
		a.dynamic("an address is not known")
		return
	}
	if len(w.text) > 5 && strings.EqualFold(w.text[:5], "file:") {
		a.dynamic("an address that names a file")
		return
	}
	if strings.Contains(w.text, "://") {
		a.hostOf(w.text)
		return
	}
	h := w.text
	if end := strings.IndexAny(h, `/?#\`); end >= 0 {
		h = h[:end]
	}
	h = h[strings.LastIndexByte(h, '@')+1:]
	if strings.HasPrefix(h, "[") {
		h, _, _ = strings.Cut(h[1:], "]")
	} else {
		h, _, _ = strings.Cut(h, ":")
	}
	a.host(h)
}
