package shell

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyser) call(c *syntax.CallExpr, sc *scope) {
	var env []string
	outer := sc
	if len(c.Args) > 0 && len(c.Assigns) > 0 {
		sc = sc.copy() // what is set for one command has its old value behind it
	}
	for _, as := range c.Assigns {
		a.assign(as, sc)
		if as.Name != nil {
			env = append(env, as.Name.Value)
		}
	}
	if len(c.Args) == 0 {
		return
	}
	args := a.words(c.Args)
	a.lists(args, sc)
	a.run(args, env, sc)
	for _, w := range c.Args {
		a.visit(w, sc)
	}
	if sc != outer {
		numbers := outer.numbers
		outer.take(sc)
		outer.numbers = numbers
	}
}

// words are the words of a command.
func (a *analyser) words(list []*syntax.Word) []word {
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
		args = append(args, a.values(w)...)
	}
	return args
}

// run judges a command whose words are known as far as they can be.
func (a *analyser) run(args []word, env []string, sc *scope) {
	if len(args) == 0 {
		a.opaque(sc, "a command without a word")
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
	a.add(Command{Name: name, Argv: argv, Env: env, Wrappers: sc.wrappers})
	if ownProgram(first.text) {
		// Where it is not the shell itself, it is the program that starts it.
		shellProgram(a, "bash", args[1:], sc)
		a.dynamic(first.text + " is a program that is not known")
		return
	}
	if strings.Contains(first.text, "/") && isKnown(name) && !slices.Contains(systemFolders, path.Dir(first.text)) {
		a.dynamic(first.text + " has the name of a known program")
	}
	a.linking(name, args[1:])
	if f, ok := a.funcs[name]; ok && !strings.Contains(first.text, "/") {
		a.callFunction(f, args[1:], sc)
		return
	}
	if strings.HasPrefix(first.text, "~") || strings.Contains(first.text, "/../") {
		a.operand(first.text, sc)
	}
	if name == "exit" || name == "return" {
		a.ends(name, args[1:], sc)
	}
	if h, ok := special(name); ok {
		h(a, name, args[1:], sc)
		return
	}
	if p, ok := programs[name]; ok {
		a.generic(p, args[1:], sc)
		a.disturbed = a.disturbed || strings.Contains(p.ops, "w") || p.ops == "mv" || p.ops == "cp" || p.writes != ""
		return
	}
	if strings.HasPrefix(name, "ld-") || name == "ld.so" {
		a.opaque(sc.wrapped(name), "the loader starts a program")
		a.maybeStarts(args[1:], sc.wrapped(name))
		return
	}
	a.worksIn(name, args[1:], sc)
	a.foreign(args[1:], sc)
}

// ownProgram reports whether a program's path depends on the process that starts it: that
// of its own program, or one of its open files.
func ownProgram(file string) bool {
	clean := path.Clean(file)
	return strings.HasPrefix(clean, "/proc/") || strings.HasPrefix(clean, "/dev/")
}

// linking notes that a command makes symbolic links.
func (a *analyser) linking(name string, args []word) {
	if name != "ln" && name != "cp" {
		return
	}
	for _, w := range args {
		t := w.text
		if !w.known || strings.HasPrefix(t, "--s") || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.Contains(t, "s") {
			a.links = true
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
	if err != nil || u.Host == "" {
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
		if w.known { // what is not known has made the script dynamic
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
		if w.known {
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
		case !w.known:
			a.unknownPath(m == 'w')
		case m == 'w':
			a.write(w.text, sc)
		default:
			a.read(w.text, sc)
		}
	}
}

func (a *analyser) url(w word) {
	if !w.known {
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

// options splits arguments into options and operands by a table such as
// "o=w output=w d=d". An option that is not in the table takes no value. The
// actions of a value: v nothing, r read, w written, d data with @file, u an
// address, n it holds names of files, x it names a program, s it is a script, W
// the operands are written;
// a ? behind it: the value must be attached.
func (a *analyser) options(table string, args []word, sc *scope) (operands []word, hits map[string]bool) {
	actions := map[string]string{}
	for f := range strings.FieldsSeq(table) {
		name, action, _ := strings.Cut(f, "=")
		actions[name] = action
	}
	hits = map[string]bool{}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.known || len(w.text) < 2 || w.text[0] != '-' {
			operands = append(operands, w)
			continue
		}
		if w.text == "--" {
			return append(operands, args[i+1:]...), hits
		}
		name, value, attached := strings.TrimPrefix(w.text, "--"), "", false
		if strings.HasPrefix(w.text, "--") {
			name, value, attached = strings.Cut(name, "=")
			name = abbreviated(name, actions)
		} else {
			name, value, attached = short(w.text[1:], actions, hits)
		}
		hits[name] = true
		action, ok := actions[name]
		if !ok {
			if attached {
				a.attached(value, sc)
			}
			continue
		}
		v := word{text: value, known: true, glob: w.glob}
		if action == "W" {
			hits["W"] = true
			continue
		}
		if !attached && !strings.HasSuffix(action, "?") {
			i++
			if i >= len(args) {
				continue
			}
			v = args[i]
		}
		a.option(strings.TrimSuffix(action, "?"), v, sc)
	}
	return operands, hits
}

// attached judges the value of a long option that we do not know: it may be a
// file, unless it is a word that such options take.
func (a *analyser) attached(value string, sc *scope) {
	switch value {
	case "", "auto", "always", "never", "yes", "no", "all", "none", "short", "full", "true", "false":
		return
	}
	if isNumber(value) || strings.Contains(value, "://") {
		return
	}
	a.facts.Operands = a.touch(a.facts.Operands, value, sc)
}

// abbreviated resolves a long option cut short, as getopt accepts it.
func abbreviated(name string, actions map[string]string) string {
	if _, ok := actions[name]; ok || len(name) < 3 {
		return name
	}
	for full := range actions {
		if len(full) > 2 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return name
}

// short finds the first letter of a cluster that takes a value.
func short(cluster string, actions map[string]string, hits map[string]bool) (name, value string, attached bool) {
	if _, ok := actions[cluster]; ok && len(cluster) > 1 {
		return cluster, "", false // -exec, -name: a single dash and a word
	}
	for i := range len(cluster) {
		letter := cluster[i : i+1]
		if action, ok := actions[letter]; ok && action != "W" {
			return letter, strings.TrimPrefix(cluster[i+1:], "="), i+1 < len(cluster)
		}
		hits[letter] = true
		if actions[letter] == "W" {
			return letter, cluster[i+1:], true
		}
	}
	return cluster, "", false
}

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
		a.opaque(sc, "an option names a program")
	case "s":
		if !v.known {
			a.opaque(sc, "an option names a program")
			return
		}
		a.script(v.text, sc.copy())
	default:
		if !v.known && v.split {
			a.dynamic("the value of an option is not known")
		}
	}
}
