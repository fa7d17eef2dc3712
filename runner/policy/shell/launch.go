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
