package shell

import (
	"strings"
)

func (a *analyser) option(action string, v word, sc *scope) {
	switch action {
	case "r", "w":
		a.touchWord(v, action, sc)
	case "n":
		a.touchWord(v, "r", sc)
		a.dynamic("names of files that stand in a file")
	case "u":
		if strings.HasPrefix(v.text, "@") {
			a.dynamic("addresses that stand in a file")
		}
		a.url(v)
	case "d":
		if !v.known {
			a.dynamic("what is sent is not known")
			return
		}
		at := strings.IndexByte(v.text, '@')
		if less := strings.Index(v.text, "=<"); at < 0 && less >= 0 {
			at = less + 1 // curl -F name=<file
		}
		if at < 0 {
			return
		}
		if f, _, _ := strings.Cut(v.text[at+1:], ";"); f != "" {
			a.read(f, sc)
		}
	case "x":
		a.unresolved(sc, "an option names a program")
	case "s":
		if v.shown() == Unknown {
			a.unresolved(sc, "an option names a program")
			return
		}
		a.elsewhereRuns(v.text, sc)
	default:
		if !v.known && v.split {
			a.dynamic("the value of an option is not known")
		}
	}
}
