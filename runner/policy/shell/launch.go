package shell

import (
	"regexp"
	"strings"
	"sync"
)

func dd(a *analyser, _ string, args []word, sc *scope) {
	for _, w := range args {
		key, value, _ := strings.Cut(w.text, "=")
		if !w.known {
			a.dynamic("an argument of dd is not known")
			key, value = strings.TrimSuffix(key, "="), ""
		}
		switch {
		case key == "if" && w.known:
			a.read(value, sc)
		case key == "of" && w.known:
			a.write(value, sc)
		case key == "of":
			a.unknownPath(true)
		}
	}
}

func rsync(a *analyser, name string, args []word, sc *scope) {
	a.disturbed = true
	ops, hits := a.options("e=x rsh=x rsync-path=x exclude=v include=v files-from=n exclude-from=r log-file=w filter=v out-format=v password-file=r backup-dir=w temp-dir=w T=w daemon=x", args, sc)
	if hits["daemon"] || hits["config"] {
		a.unresolved(sc.wrapped(name), "rsync as a daemon")
	}
	if len(ops) > 0 {
		a.tree(ops[:len(ops)-1], sc)
	}
	local := ops[:0:0]
	for _, w := range ops {
		if w.known && strings.Contains(w.text, ":") {
			a.network(false)
			a.url(w)
			continue
		}
		local = append(local, w)
	}
	if len(local) == len(ops) {
		a.copies("cp", local, sc)
		return
	}
	mode := "r"
	if len(ops) > 0 && len(local) > 0 && local[len(local)-1].text == ops[len(ops)-1].text {
		mode = "w"
	}
	a.operands(mode, local, sc)
}

var plainName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
})

// examine judges test and [.
func examine(a *analyser, _ string, args []word, sc *scope) {
	for i, w := range args {
		if w.split && !w.known {
			a.dynamic("a test with a word that is not known")
		}
		if w.known && (w.text == "-v" || w.text == "-R") && i+1 < len(args) {
			name, subscript, indexed := strings.Cut(args[i+1].text, "[")
			switch {
			case !args[i+1].known || !plainName().MatchString(name):
				a.dynamic("a test that evaluates an index")
			case indexed:
				a.subscript(strings.TrimSuffix(subscript, "]"), sc)
			}
		}
	}
}
