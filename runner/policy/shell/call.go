package shell

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

func (a *analyser) call(c *syntax.CallExpr, sc *scope) {
	var env []string
	outer, before := sc, sc.vars
	if len(c.Args) > 0 && len(c.Assigns) > 0 {
		sc = sc.copy() // what is set for one command has its old value behind it
	}
	for _, as := range c.Assigns {
		if !emptyIFS(as) || len(c.Args) == 0 || c.Args[0].Lit() != "read" || a.funcs["read"] != nil {
			a.assign(as, sc)
		}
		if as.Name != nil {
			env = append(env, as.Name.Value)
		}
	}
	if len(c.Args) == 0 {
		return
	}
	args := a.words(c.Args, sc)
	a.lists(args, sc)
	first := len(a.facts.Commands)
	sc.decides = a.deciding[c]
	a.run(args, env, sc)
	sc.decides = false
	a.embeddedEnvironment(first, c.Assigns, sc)
	// Its words are expanded before anything is assigned.
	after := sc.vars
	sc.vars = before
	for _, w := range c.Args {
		a.visit(w, sc)
	}
	sc.vars = after
	if sc != outer {
		vars := outer.vars
		outer.take(sc)
		outer.vars = vars
	}
}

// words are the words of a command.
func (a *analyser) words(list []*syntax.Word, sc *scope) []word {
	var args []word
	for i, w := range list {
		if i == 0 && a.bound != nil {
			// The value of a variable is not taken for the name of a program.
			bound := a.bound
			a.bound = nil
			args = a.values(w)
			a.bound = bound
			continue
		}
		args = append(args, a.expand(w, sc)...)
	}
	return args
}

// run judges a command whose words are known as far as they can be.
func (a *analyser) run(args []word, env []string, sc *scope) {
	if len(args) == 0 {
		a.unresolved(sc, "a command without a word")
		return
	}
	argv := make([]string, len(args))
	for i, w := range args {
		argv[i] = w.shown()
	}
	first := args[0]
	if !first.known || first.glob || first.split || first.text == "" || first.text == Unknown {
		argv[0] = Unknown
		a.add(Command{Name: Unknown, Argv: argv, Env: env, Wrappers: sc.wrappers})
		a.dynamic("the program's name is not known")
		return
	}
	name := path.Base(first.text)
	a.add(Command{Name: name, Argv: argv, Env: env, Wrappers: sc.wrappers, Decisive: sc.decides})
	defer func(outer int) { a.current = outer }(a.current)
	a.current = len(a.facts.Commands) - 1
	if ownProgram(first.text) {
		// Where it is not the shell itself, it is the program that starts it.
		shellProgram(a, "bash", args[1:], sc)
		a.dynamic(first.text + " is a program that is not known")
		return
	}
	if strings.Contains(first.text, "/") && isKnown(name) && !slices.Contains(systemFolders, path.Dir(first.text)) {
		a.dynamic(first.text + " has the name of a known program")
	}
	a.linking(name, args[1:], sc)
	if f, ok := a.funcs[name]; ok && !strings.Contains(first.text, "/") {
		a.callFunction(f, args[1:], sc)
		return
	}
	if strings.HasPrefix(first.text, "~") || strings.Contains(first.text, "/../") || path.IsAbs(first.text) && !ofTheSystem(first.text) {
		a.operand(first.text, sc)
	}
	if name == "exit" || name == "return" {
		a.ends(name, args[1:], sc)
	}
	if h, ok := special(name); ok {
		h(a, name, args[1:], sc)
		return
	}
	if p, ok := programs.Find(name); ok {
		a.tabled(p, name, args[1:], sc)
		return
	}
	if strings.HasPrefix(name, "ld-") || name == "ld.so" {
		a.unresolved(sc.wrapped(name), "the loader starts a program")
		a.perhaps(name, args[1:], sc)
		return
	}
	a.worksIn(name, args[1:], sc)
	a.opaque(name + " is not in the table of programs")
	a.perhaps(name, args[1:], sc)
	a.foreign(args[1:], sc)
}

// ofTheSystem reports whether a program is in one of the folders of the system.
func ofTheSystem(file string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/lib"}, func(dir string) bool { return strings.HasPrefix(path.Clean(file), dir) })
}

// ownProgram reports whether a program's path depends on the process that starts it: that
// of its own program, or one of its open files.
func ownProgram(file string) bool {
	clean := path.Clean(file)
	return strings.HasPrefix(clean, "/proc/") || strings.HasPrefix(clean, "/dev/")
}

// linking notes that a command makes symbolic links, or gives some another name.
func (a *analyser) linking(name string, args []word, sc *scope) {
	switch name {
	case "ln", "cp":
		for _, w := range args {
			t := w.text
			short := len(t) > 1 && t[0] == '-' && t[1] != '-'
			if !w.known || strings.HasPrefix(t, "--s") || short && strings.Contains(t, "s") || name == "cp" && (short && strings.ContainsAny(t, "dP") || strings.HasPrefix(t, "--no-de")) {
				a.links = true
			}
		}
	case "mv":
	default:
		return
	}
	if name == "ln" || a.files.HasLinks == nil {
		return
	}
	for _, w := range args {
		if !w.known || w.glob || strings.HasPrefix(w.text, "-") {
			continue
		}
		for _, dir := range sc.here.at {
			if in, ok := joined(dir, w.text); ok && a.files.HasLinks(in) {
				a.links = true
			}
		}
	}
}

// bystanders are commands that follow no link.
var bystanders = []string{"ln", "cd", "echo", "printf", "mkdir", "pwd", "true", ":", "test", "["}

// followed checks whether something in the script may follow a link that the
// script itself makes: where that leads cannot be looked up beforehand.
func (a *analyser) followed() {
	other := len(a.facts.Redirects) > 0
	for _, c := range a.facts.Commands {
		other = other || !slices.Contains(bystanders, c.Name)
	}
	if a.links && other && len(a.facts.Commands) > 1 {
		a.dynamic("the script makes a link and may follow it")
	}
	a.facts.Follows = a.unpacks && len(a.facts.Commands) > 1
}

var systemFolders = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// foreign judges the arguments of a program that we do not know.
func (a *analyser) foreign(args []word, sc *scope) {
	a.disturbed = true
	for _, w := range args {
		if !w.known {
			if !w.number {
				a.dynamic("an argument of an unknown program")
			}
			continue
		}
		text := argument(w.text)
		if n := len(a.facts.Operands); text != "" {
			a.operand(text, sc)
			if len(a.facts.Operands) > n {
				a.tree([]word{{text: text, known: true}}, sc)
			} else if !sc.here.unknown && !strings.HasPrefix(text, "-") && !strings.Contains(text, "://") {
				a.word(text, sc)
			}
		}
		a.hostOf(text)
	}
}

// argument is what of an argument may be a path: the value of an option, behind an
// equals sign or attached to its letter, the file behind an @, or all of it.
func argument(text string) string {
	option := strings.HasPrefix(text, "-")
	if name, v, ok := strings.Cut(text, "="); ok && (option || !strings.ContainsAny(name, "/.")) && !strings.Contains(v, "://") {
		return v
	}
	if option && len(text) > 2 && text[1] != '-' && strings.IndexByte("/~.", text[2]) >= 0 {
		return text[2:]
	}
	if len(text) > 1 && text[0] == '@' {
		return text[1:]
	}
	return text
}

// word notes an argument that may be the name of a file.
func (a *analyser) word(text string, sc *scope) {
	if len(a.facts.Words) >= wordsLimit {
		a.dynamic("an unknown program has too many arguments")
		return
	}
	a.facts.Words = a.touch(a.facts.Words, text, sc)
}

// operand notes an argument that looks like a path: it may lead outside, by
// itself or behind a symbolic link.
func (a *analyser) operand(text string, sc *scope) {
	if strings.Contains(text, "://") || strings.HasPrefix(text, "-") {
		return
	}
	if strings.ContainsAny(text, "/.") || strings.HasPrefix(text, "~") {
		a.facts.Operands = a.touch(a.facts.Operands, text, sc)
	}
}

// hostOf notes the host of a URL.
func (a *analyser) hostOf(text string) {
	if !strings.Contains(text, "://") {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.Contains(text, someName) {
		a.dynamic("a URL that cannot be read")
		return
	}
	a.host(u.Hostname())
}

// remote notes the host of a place written as host:path or user@host:path.
func (a *analyser) remote(text string) {
	host, _, ok := strings.Cut(text, ":")
	if ok && host != "" && !strings.Contains(host, "/") && !strings.Contains(text, "://") {
		a.host(host[strings.LastIndexByte(host, '@')+1:])
	}
}
