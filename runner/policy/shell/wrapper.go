package shell

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// startsWith judges a program that is started with its arguments; instead of it, a shell
// may be given a text behind -c.
func (a *analyser) startsWith(name string, words []word, sc *scope) {
	if len(words) > 1 && words[0].known && (words[0].text == "-c" || words[0].text == "--command") {
		a.setting(name, setting{name: "-c", kind: "script", value: words[1]}, sc)
		return
	}
	a.starts(words, sc.wrapped(name))
}

// starts analyses a program that another program starts: a builtin that would change the
// shell has no effect there.
func (a *analyser) starts(args []word, inner *scope) {
	a.run(args, nil, inner.copy())
}

// shellText judges a text that a program hands to sh.
func (a *analyser) shellText(name, text string, sc *scope) {
	if differsInPOSIX(text) {
		a.dynamic("the shell of " + name + " reads the text in another way than bash")
	}
	a.facts.Starts = appendNew(a.facts.Starts, "sh")
	a.elsewhereRuns(text, sc.wrapped(name))
}

// assignments judges the variables in front of a program: NAME=VALUE, and a dash as env
// takes it. It returns what follows them, and the scope of the program.
func (a *analyser) assignments(name string, words []word, sc *scope) (rest []word, inner *scope) {
	inner = sc.copy()
	for i, w := range words {
		switch {
		case !w.known:
			a.unresolved(sc.wrapped(name), "an argument of "+name+" is not known")
			return nil, inner
		case i == 0 && w.text == "-":
		case strings.Contains(w.text, "="):
			a.environment(w, inner)
		default:
			return words[i:], inner
		}
	}
	return nil, inner
}

// architectures are the names of machines that setarch takes in front of a program.
var architectures = []string{
	"x86_64", "i386", "i486", "i586", "i686", "linux32", "linux64", "uname26", "aarch64", "arm64", "arm", "armv7l", "armv8l", "ppc", "ppc64", "ppc64le", "s390", "s390x", "sparc", "sparc64", "riscv64",
	"mips", "mips64", "alpha", "ia64", "athlon", "parisc", "parisc64",
}

// architecture judges the name of a machine, behind which there are options again, or else
// a program.
func (a *analyser) architecture(name string, words []word, sc *scope) {
	options, ok := programs.Find("linux64")
	if ok && words[0].known && slices.Contains(architectures, words[0].text) {
		a.tabled(options, name, words[1:], sc)
		return
	}
	a.startsWith(name, words, sc)
}

// fed judges a program that gets more arguments from the input; xargs may put them in the
// place of a mark.
func (a *analyser) fed(name string, words []word, g *arguments, sc *scope) {
	inner := sc.wrapped(name)
	inner.input = nil
	in, mark, divided := a.output(sc.input), "", g.has("--null")
	if g.has("--replace") {
		mark = "{}"
	}
	for _, v := range g.values {
		switch v.name {
		case "-I", "-J", "--replace":
			mark = v.value.text
		case "--delimiter":
			divided = v.value.known && (v.value.text == `\n` || v.value.text == `\0`)
			if !divided { // a part of a name may be any other
				in = nil
			}
		case "--arg-file":
			in = nil
		}
	}
	given := []word{{split: mark == ""}}
	if in != nil {
		a.consumed(in, divided && in.zero, sc)
		given = in.words
	}
	if mark == "" {
		a.starts(append(slices.Clone(words), several(given)...), inner)
		return
	}
	a.each(given, mark, words, inner)
}

// writesOrStarts judges a file that is written, or a program behind | or !.
func (a *analyser) writesOrStarts(name string, w word, sc *scope) {
	if w.known && strings.IndexAny(strings.TrimSpace(w.text), "|!") == 0 {
		a.unresolved(sc.wrapped(name), name+" writes to a program")
		return
	}
	a.disturbed = true
	a.touchWord(w, "w", sc)
}

// splitString splits the text of env -S. Its own quoting is almost the shell's: where
// they differ, the text is not known.
func splitString(w word) ([]word, bool) {
	if !w.known || w.glob || strings.ContainsAny(w.text, "$`;&|<>()#\\") {
		return nil, false
	}
	text := w.text
	if strings.ContainsAny(text, `"'`) {
		parsed := &analyser{facts: &Facts{}}
		file, err := parsed.parse(": " + text)
		if err != nil || len(file.Stmts) != 1 {
			return nil, false
		}
		call, ok := simple(file.Stmts[0])
		if !ok {
			return nil, false
		}
		var words []word
		for _, x := range call.Args[1:] {
			v := parsed.value(x)
			if !v.known {
				return nil, false
			}
			v.glob = false
			words = append(words, noHome(v))
		}
		return words, true
	}
	var words []word
	for f := range strings.FieldsSeq(text) {
		words = append(words, noHome(literal(f)))
	}
	return words, true
}

// noHome is a word in which a tilde is no home folder, since no shell expands it.
func noHome(w word) word {
	if strings.HasPrefix(w.text, "~") {
		w.text = "./" + w.text
	}
	return w
}
