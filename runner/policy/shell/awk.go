package shell

import (
	"strings"
)

func awk(a *analyser, name string, args []word, sc *scope) {
	i := 0
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-") && args[i].text != "--"; i++ {
		switch t := args[i].text; {
		case t == "-F" || t == "-v" || t == "--assign" || t == "--field-separator":
			i++
		case strings.HasPrefix(t, "-F") || strings.HasPrefix(t, "-v"):
		default:
			a.unresolved(sc.wrapped(name), "an option of awk that may load a program")
			return
		}
	}
	if i < len(args) && args[i].known && args[i].text == "--" {
		i++
	}
	if i >= len(args) {
		return
	}
	if !args[i].known || !harmlessAwk(args[i].text) {
		a.unresolved(sc.wrapped(name), "an awk program that may run or write something")
	}
	for _, w := range args[i+1:] {
		if w.known && strings.Contains(w.text, "=") && !strings.Contains(w.text, "/") {
			continue
		}
		a.touchWord(w, "r", sc)
	}
}

// harmlessAwk reports whether a program neither runs, reads nor writes anything: > is a
// comparison unless it is part of a print statement.
func harmlessAwk(text string) bool {
	text = strings.ReplaceAll(text, "||", "  ")
	if strings.ContainsAny(text, "|@`") || strings.Contains(text, "system") || strings.Contains(text, "getline") || strings.Contains(text, "ARGV") {
		return false
	}
	for from := 0; ; {
		p := strings.Index(text[from:], "print")
		if p < 0 {
			return true
		}
		from += p + len("print")
		if redirects(text[from:]) {
			return false
		}
	}
}

// redirects reports whether > may be part of the print statement before text. A string or
// a pattern may contain what looks like the end of the statement; a new line after a comma
// does not end it.
func redirects(text string) bool {
	quoted := false
	for i := range len(text) {
		switch text[i] {
		case '"', '/', '\\':
			quoted = true
		case ';', '}', '{':
			if !quoted {
				return false
			}
		case '>':
			return true
		}
	}
	return false
}
