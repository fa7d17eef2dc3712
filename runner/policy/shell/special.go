package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// handler judges the arguments of one program.
type handler func(a *analyser, name string, args []word, sc *scope)

// special returns the handler of a program whose arguments are not described
// by a table. It is a function, not a map: handlers call it again.
func special(name string) (handler, bool) {
	switch name {
	case "cd", "chdir":
		return changeFolder, true
	case "pushd":
		return changeFolder, true
	case "popd":
		return popFolder, true
	case "dirs":
		return func(*analyser, string, []word, *scope) {}, true
	case "eval":
		return evalText, true
	case "source", ".":
		return sourceFile, true
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "mksh", "rbash", "csh", "tcsh":
		return shellProgram, true
	case "trap":
		return trap, true
	case "find":
		return find, true
	case "sed", "gsed":
		return sed, true
	case "awk", "gawk", "mawk", "nawk":
		return awk, true
	case "jq", "gojq", "jaq", "yq":
		return jq, true
	case "dd":
		return dd, true
	case "printf", "read", "mapfile", "readarray", "getopts", "wait":
		return naming, true
	case "let":
		return let, true
	case "test", "[":
		return examine, true
	case "export", "declare", "local", "readonly", "typeset", "unset", "set", "shopt":
		return declare, true
	case "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "fc", "history", "coproc", "bwrap", "expect", "capsh":
		return startsOthers, true
	}
	if slices.Contains(including, name) {
		return func(a *analyser, n string, args []word, sc *scope) {
			a.foreign(args, sc)
			a.dynamic(n + " opens the files that its input names")
		}, true
	}
	return nil, false
}

// including are programs whose input names files that they show or pack.
var including = []string{
	"as", "pax", "afio",
}

// isKnown reports whether a name has a meaning for the analysis, so that another program
// of that name would mislead it.
func isKnown(name string) bool {
	if _, ok := programs.Find(name); ok {
		return true
	}
	_, ok := special(name)
	return ok
}

func join(args []word) (string, bool) {
	texts := make([]string, len(args))
	for i, w := range args {
		if !w.known || w.glob || quotedHome(w) {
			return "", false
		}
		texts[i] = w.text
	}
	return strings.Join(texts, " "), true
}

// quotedHome reports whether a word may begin with a tilde in quotes, which is no home
// folder, but becomes one in a text that is read again.
func quotedHome(w word) bool { return strings.HasPrefix(w.text, "./~") }

func evalText(a *analyser, name string, args []word, sc *scope) {
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	text, ok := join(args)
	if !ok {
		a.unresolved(sc.wrapped(name), "eval of a text that is not known")
		return
	}
	inner := sc.wrapped(name)
	a.script(text, inner)
	sc.take(inner)
}

func sourceFile(a *analyser, name string, args []word, sc *scope) {
	if len(args) > 0 {
		a.touchWord(args[0], "r", sc)
	}
	a.unresolved(sc.wrapped(name), name+" runs a file")
	sc.yes, sc.no = folders{unknown: true}, folders{unknown: true}
	a.moved()
}

func shellProgram(a *analyser, name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	// once records the unknown script once, whatever the number of reasons.
	said := false
	once := func(reason string) {
		if said {
			a.dynamic(reason)
			return
		}
		said = true
		a.unresolved(inner, reason)
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known:
			once(name + " runs something that is not known")
			return
		case w.text == "--version" || w.text == "--help":
			return
		case strings.HasPrefix(w.text, "--"):
			// --rcfile, --init-file, --login: each runs more than we see.
			if w.text != "--norc" && w.text != "--noprofile" && w.text != "--posix" && w.text != "--restricted" {
				once(name + " with an option that runs a file")
			}
		case len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+'):
			if changesMeaning(w.text) {
				a.dynamic("a shell option that changes what names mean")
			}
			if strings.ContainsAny(w.text, "lis") {
				once(name + " as a login or interactive shell")
			}
			if strings.Contains(w.text, "c") && w.text[0] == '-' {
				a.commandText(args[i+1:], inner, name)
				return
			}
			if strings.HasSuffix(w.text, "o") || strings.HasSuffix(w.text, "O") {
				i++
				if i < len(args) && (!args[i].known || meanings[args[i].text] || changesMeaning(args[i].text)) {
					a.dynamic("a shell option that is not known")
				}
			}
		default:
			a.read(w.text, sc)
			if !a.scriptFile(name, w, inner) {
				once(name + " runs a file")
			}
			return
		}
	}
	once(name + " reads commands from its input")
}

// commandText judges what follows -c: options may still come before the text.
func (a *analyser) commandText(args []word, sc *scope, name string) {
	for len(args) > 0 && args[0].known && len(args[0].text) > 1 && args[0].text[0] == '-' {
		if strings.ContainsAny(args[0].text, "lisoO") {
			a.unresolved(sc, name+" with more options behind -c")
		}
		args = args[1:]
	}
	if len(args) == 0 || args[0].shown() == Unknown || quotedHome(args[0]) {
		a.unresolved(sc, name+" -c runs a text that is not known")
		return
	}
	a.inLanguage(name, args[0].text)
	a.elsewhereRuns(args[0].text, sc)
}

// inLanguage checks whether a shell reads a text as bash does, which is how it is judged.
func (a *analyser) inLanguage(name, text string) {
	switch path.Base(name) {
	case "bash", "rbash":
	case "sh", "dash", "ash":
		if differsInPOSIX(text) {
			a.dynamic(name + " reads the text in another way than bash")
		}
	default:
		// Its language is another one: what is found here may not be all.
		a.dynamic(name + " reads the text in another way than bash")
	}
}

// scriptFile judges a file that a shell runs by its text. It reports whether it could.
func (a *analyser) scriptFile(name string, file word, sc *scope) bool {
	if a.files.Script == nil || file.glob || len(a.facts.Scripts) >= scriptsLimit {
		return false
	}
	paths := a.paths(file.text, sc)
	if len(paths) != 1 || paths[0] == Unknown {
		return false
	}
	text, ok := a.files.Script(paths[0])
	if !ok {
		return false
	}
	a.facts.Scripts = append(a.facts.Scripts, paths[0])
	a.inLanguage(name, text)
	a.elsewhereRuns(text, sc)
	return true
}

// elsewhereRuns judges a text that another shell runs: it has neither the variables nor
// the functions of this one.
func (a *analyser) elsewhereRuns(text string, sc *scope) {
	bound, funcs := a.bound, a.funcs
	a.bound, a.funcs = nil, map[string]*function{}
	inner := sc.copy()
	inner.vars, inner.input, inner.stack, inner.returned = given{}, nil, nil, nil
	inner.previous = folders{unknown: true}
	a.script(text, inner)
	a.bound, a.funcs = bound, funcs
}

func trap(a *analyser, name string, args []word, sc *scope) {
	if len(args) > 0 && args[0].known && (args[0].text == "-l" || args[0].text == "-p") {
		return
	}
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].known && (args[0].text == "-" || args[0].text == "") {
		return
	}
	if !args[0].known || quotedHome(args[0]) {
		a.unresolved(sc.wrapped(name), "a trap whose text is not known")
		return
	}
	// It runs in the folder that the script is in by then.
	a.trapped = true
	a.inside++
	a.maybe(func() { a.script(args[0].text, sc.wrapped(name)) })
	a.inside--
}

const sedOptions = "n e: f: E r i:: l: s u z expression: file: quiet silent in-place:: regexp-extended line-length: separate unbuffered null-data zero-terminated debug sandbox posix " +
	"follow-symlinks binary help version b"

func sed(a *analyser, _ string, args []word, sc *scope) {
	p, ok := optionTable(sedOptions).parse(args, !stopAtOperand)
	if !ok {
		a.unresolved(sc, "an option of sed that is not known")
		a.operands("rw", args, sc)
		return
	}
	files, mode, suffix := p.operands, "r", ""
	var scripts []word
	for _, o := range p.options {
		switch o.name {
		case "e", "expression":
			scripts = append(scripts, o.value)
		case "f", "file":
			scripts = append(scripts, word{})
			a.touchWord(o.value, "r", sc)
		case "i", "in-place":
			mode, a.disturbed = "rw", true
			suffix = o.value.text
			if !o.value.known && o.value.head != "" || strings.Contains(suffix, "/") {
				a.dynamic("sed keeps copies in another folder")
			}
		}
	}
	if len(scripts) == 0 && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	a.sedScripts(scripts, sc)
	a.operands(mode, files, sc)
	for _, w := range files {
		if suffix != "" && w.known {
			a.write(kept(w.text, suffix), sc)
		}
	}
}

// kept is the name of the copy that sed -i keeps of a file.
func kept(file, suffix string) string {
	dir, base := path.Split(file)
	if strings.Contains(suffix, "*") {
		return dir + strings.ReplaceAll(suffix, "*", base)
	}
	return file + suffix
}

// sedScripts judges the parts of a program of sed, which sed joins by lines.
func (a *analyser) sedScripts(parts []word, sc *scope) {
	texts := make([]string, len(parts))
	for i, w := range parts {
		if w.shown() == Unknown {
			a.unresolved(sc, "a sed script that is not known")
			return
		}
		texts[i] = w.text
	}
	p := parseSed(strings.Join(texts, "\n"))
	if p.runs || p.bad {
		a.unresolved(sc, "a sed script that may run or write something")
	}
	for _, f := range p.reads {
		a.read(f, sc)
	}
	for _, f := range p.writes {
		a.disturbed = true
		if !strings.HasPrefix(f, "/dev/std") {
			a.write(f, sc)
		}
	}
}

// readsEnvironment finds env and $ENV in a program of jq, env(NAME), strenv(NAME) and
// envsubst in one of yq; .env is a field.
var readsEnvironment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^.\w])(\$ENV|env|strenv|envsubst)\b`)
})

// jq judges jq and programs like it, whose program can read other files.
func jq(a *analyser, name string, args []word, sc *scope) {
	for _, w := range args {
		if w.known && (strings.Contains(w.text, "import") || strings.Contains(w.text, "include") || strings.Contains(w.text, "load")) {
			a.dynamic("a program of " + name + " that loads a file")
		}
	}
	p, ok := programs.Find(name)
	if !ok {
		return
	}
	for i, w := range argumentsOf(p, args).operands {
		if (i == 0 || name == "yq") && (!w.known || readsEnvironment().MatchString(w.text)) {
			a.inherits(everyVariable)
		}
	}
	a.tabled(p, name, args, sc)
}

// startsOthers is a program that starts others in ways of its own.
func startsOthers(a *analyser, name string, args []word, sc *scope) {
	switch name {
	case "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "fc", "history":
		if len(args) == 0 || name == "history" && len(args) == 1 && args[0].known && isNumber(args[0].text) {
			return
		}
		a.dynamic(name + " changes what names mean")
		return
	}
	if len(args) == 1 && args[0].known && (args[0].text == "--version" || args[0].text == "--help") {
		return
	}
	a.unresolved(sc.wrapped(name), name+" starts programs of its own")
}
