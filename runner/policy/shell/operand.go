package shell

import (
	"strings"
)

func (a *analyser) tree(folders []word, sc *scope) {
	for _, w := range folders {
		if w.known || w.number { // what is not known has made the script dynamic
			a.facts.Trees = a.touch(a.facts.Trees, w.text, sc)
		}
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
