package policy

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// A deny or an ask recognises a command however its options are written: in any order, in
// a cluster, cut short, and before a subcommand. An allow does not: see entry.allows.

// longAsLetter are the letters of common long options.
var longAsLetter = map[string]string{"recursive": "r", "force": "f", "all": "a", "delete": "d"}

// likeness is the pattern of an entry, taken apart: the words that must come in this
// order, the options that must be among the others, and what must match the rest.
type likeness struct {
	words, options []string
	tail           string
}

func newLikeness(pattern string) likeness {
	var l likeness
	var tail []string
	for i, w := range strings.Fields(strings.ReplaceAll(pattern, "*-", "* -")) {
		switch {
		case i > 0 && len(w) > 1 && w[0] == '-':
			l.options = append(l.options, w)
		case i > 0 && (len(tail) > 0 || strings.ContainsAny(w, "*?")):
			tail = append(tail, w)
		default:
			l.words = append(l.words, w)
		}
	}
	if l.tail = strings.Join(tail, " "); l.tail == "" && strings.HasSuffix(pattern, "*") {
		l.tail = "*"
	}
	return l
}

// canonicalLikeness is that of a pattern in the one spelling that the table of programs has.
func canonicalLikeness(pattern string) likeness {
	words := strings.Fields(pattern)
	if len(words) == 0 || strings.ContainsAny(words[0], "*?") {
		return likeness{}
	}
	return newLikeness(strings.Join(shell.Canonical(words), " "))
}

// matches reports whether a command is one that the pattern is about.
func (l *likeness) matches(c *command) bool {
	if len(l.words) == 0 || len(c.Argv) == 0 {
		return false
	}
	if !slices.ContainsFunc(append(family(c.Name), c.Argv[0]), func(name string) bool { return glob(l.words[0], name) }) {
		return false
	}
	args := c.Argv[1:]
	return !slices.ContainsFunc(l.options, func(o string) bool { return !has(args, o) }) && l.follows(c.Name, args)
}

// wordsLimit bounds the options among which the words of a pattern are looked for. A command
// with more of them matches.
const wordsLimit = 64

// follows reports whether the words come in this order, with nothing but options between
// them, and the tail matches the rest.
func (l *likeness) follows(name string, args []string) bool {
	words := l.words[1:]
	// at[w] are the places that can be reached with the first w words found.
	at := make([]map[int]bool, len(words)+1)
	for w := range at {
		at[w] = map[int]bool{}
	}
	at[0][0] = true
	for i := range min(len(args), wordsLimit) + 1 {
		for w := range at {
			switch {
			case !at[w][i]:
				continue
			case w == len(words) && l.fits(args[i:]):
				return true
			case i >= len(args):
				continue
			case w < len(words) && args[i] == words[w]:
				at[w+1][i+1] = true
			}
			if len(args[i]) > 1 && args[i][0] == '-' && (w < len(words) || len(l.options) > 0) {
				least, most := skips(name, args[i])
				for n := least; n <= most; n++ {
					at[w][i+n] = true
				}
			}
		}
	}
	return len(args) > wordsLimit && slices.ContainsFunc(at, func(reached map[int]bool) bool { return reached[wordsLimit] })
}

// fits compares the tail of the pattern with the rest of the arguments.
func (l *likeness) fits(args []string) bool {
	if l.tail == "*" {
		return true
	}
	rest := strings.Join(args, " ")
	return glob(l.tail, rest) || strings.HasSuffix(l.tail, " *") && glob(strings.TrimSuffix(l.tail, " *"), rest)
}

// has reports whether an option is among arguments: a cluster of letters in any order, a
// long one cut short or by its letter.
func has(args []string, option string) bool {
	if strings.ContainsAny(option, "*?") && strings.HasPrefix(option, "--") {
		return slices.ContainsFunc(args, func(a string) bool { return glob(option, a) })
	}
	letters := ""
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		long, is := strings.CutPrefix(name, "--")
		switch {
		case is && long != "":
			if strings.HasPrefix(option, name) {
				return true
			}
			for known, letter := range longAsLetter {
				if strings.HasPrefix(known, long) {
					letters += letter
				}
			}
		case len(a) > 1 && a[0] == '-':
			letters += a[1:]
		}
	}
	want := strings.TrimRight(strings.TrimPrefix(option, "-"), "*")
	if long, is := strings.CutPrefix(option, "--"); is {
		if want = longAsLetter[long]; want == "" {
			return false
		}
	}
	for _, l := range strings.ToLower(want) {
		if !strings.ContainsRune(strings.ToLower(letters), l) {
			return false
		}
	}
	return true
}
