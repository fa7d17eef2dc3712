package shell

import (
	"path"
	"slices"
	"strings"
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
	case "popd", "dirs":
		return func(a *analyser, n string, _ []word, sc *scope) {
			if n == "popd" {
				sc.known = false
				a.moved()
			}
		}, true
	case "eval":
		return evalText, true
	case "source", ".":
		return sourceFile, true
	case "exec", "command", "builtin", "nohup", "setsid", "nice", "ionice", "stdbuf", "timeout", "time", "sudo", "doas", "chronic", "catchsegv",
		"taskset", "chrt", "strace", "ltrace", "unbuffer", "setarch", "linux32", "linux64", "prlimit", "fakeroot", "flock", "caffeinate":
		return wrapper, true
	case "env":
		return envWrapper, true
	case "xargs", "parallel":
		return xargs, true
	case "watch":
		return watch, true
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "mksh", "rbash", "csh", "tcsh":
		return shellProgram, true
	case "busybox", "toybox":
		return func(a *analyser, n string, args []word, sc *scope) {
			if len(args) > 0 {
				a.run(args, nil, sc.wrapped(n))
			}
		}, true
	case "trap":
		return trap, true
	case "find":
		return find, true
	case "git":
		return git, true
	case "sed", "gsed":
		return sed, true
	case "awk", "gawk", "mawk", "nawk":
		return awk, true
	case "tar", "bsdtar", "gtar":
		return tar, true
	case "dd":
		return dd, true
	case "rsync":
		return rsync, true
	case "printf", "read", "mapfile", "readarray", "test", "[", "getopts":
		return builtin, true
	case "export", "declare", "local", "readonly", "typeset", "unset", "set", "shopt":
		return declare, true
	case "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "Rscript", "osascript", "tclsh", "deno", "bun", "pypy", "pypy3", "guile", "julia", "java":
		return interpreter, true
	case "npm", "pnpm", "yarn", "pip", "pip3", "go", "cargo", "gem", "bundle", "apt", "apt-get", "apk", "dnf", "yum", "brew", "poetry", "uv", "composer", "conda":
		return packages, true
	case "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "fc", "history", "coproc", "docker", "podman", "nerdctl", "kubectl", "ssh", "mosh", "su", "chroot",
		"unshare", "nsenter", "bwrap", "systemd-run", "at", "batch", "crontab", "screen", "tmux", "script", "expect", "gdb", "vim", "vi", "nvim", "ex", "ed", "emacs", "nano",
		"less", "more", "man", "npx", "bunx", "uvx", "pipx", "logger", "runuser", "setpriv", "capsh", "start-stop-daemon", "entr", "socat", "openssl", "sqlite3", "psql", "mysql", "make", "gmake", "cmake", "ninja":
		return opaqueProgram, true
	}
	if slices.Contains(including, name) {
		return func(a *analyser, n string, args []word, sc *scope) {
			a.foreign(args, sc)
			a.dynamic(n + " opens the files that its input names")
		}, true
	}
	if strings.HasPrefix(name, "mkfs.") {
		return func(a *analyser, _ string, args []word, sc *scope) { a.generic(programs["mkfs"], args, sc) }, true
	}
	if slices.Contains(remote, name) {
		return func(a *analyser, _ string, args []word, sc *scope) {
			a.network(true)
			a.foreign(args, sc)
		}, true
	}
	if strings.HasPrefix(name, "python3.") || strings.HasPrefix(name, "perl5") {
		return interpreter, true
	}
	return nil, false
}

// including are programs whose input names files that they show or pack.
var including = []string{
	"cpp", "m4", "soelim", "troff", "groff", "nroff", "mandoc", "tex", "latex", "pdflatex", "xelatex", "lualatex", "gs", "as", "cpio", "pax", "afio", "7z", "7za", "7zr",
}

// remote are programs of services elsewhere: what they do there is theirs, but
// they talk to it.
var remote = []string{
	"gh", "glab", "hub", "aws", "gcloud", "gsutil", "az", "doctl", "heroku", "flyctl", "fly", "vercel", "netlify", "terraform", "tofu", "pulumi", "helm", "s3cmd", "rclone",
	"mail", "mailx", "sendmail", "mutt", "ntpdate", "snmpget", "ldapsearch", "redis-cli", "mongo", "mongosh", "http", "https", "httpie", "xh", "aria2c", "yt-dlp", "lynx", "w3m", "links", "elinks", "lftp", "tftp", "rsh", "rlogin",
}

// isKnown says whether a name has a meaning for the analysis, so that something
// else of that name would mislead it.
func isKnown(name string) bool {
	if _, ok := programs[name]; ok {
		return true
	}
	_, ok := special(name)
	return ok
}

// selects says whether a variable decides what runs.
func selects(name string) bool {
	return selectors[name] || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_") ||
		strings.HasPrefix(name, "BASH_FUNC_") || strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_EDITOR") || strings.HasPrefix(name, "npm_config_")
}

// loads says whether a variable names a library that is loaded.
func loads(name string) bool { return name == "LD_PRELOAD" || name == "LD_AUDIT" || name == "BASH_ENV" }

func changeFolder(a *analyser, name string, args []word, sc *scope) {
	a.moved()
	var ops []word
	physical := false
	for i, w := range args {
		if w.known && w.text == "--" {
			ops = append(ops, args[i+1:]...)
			break
		}
		if w.known && len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') {
			if name == "pushd" {
				sc.known = false
			}
			physical = physical || strings.ContainsAny(w.text, "P@")
			continue
		}
		ops = append(ops, w)
	}
	switch {
	case len(ops) == 0 && name != "pushd":
		sc.cwd, sc.known = "~", true
	case len(ops) != 1 || !ops[0].known || ops[0].glob || ops[0].text == "-", physical && strings.Contains(ops[0].text, ".."):
		// With -P the dots are those behind a link.
		sc.known = false
	case path.IsAbs(ops[0].text) || strings.HasPrefix(ops[0].text, "~"):
		sc.cwd, sc.known = path.Clean(ops[0].text), true
	default:
		sc.cwd = path.Join(sc.cwd, ops[0].text)
	}
}

func join(args []word) (string, bool) {
	texts := make([]string, len(args))
	for i, w := range args {
		if !w.known || w.glob {
			return "", false
		}
		texts[i] = w.text
	}
	return strings.Join(texts, " "), true
}

func evalText(a *analyser, name string, args []word, sc *scope) {
	if len(args) > 0 && args[0].known && args[0].text == "--" {
		args = args[1:]
	}
	text, ok := join(args)
	if !ok {
		a.opaque(sc.wrapped(name), "eval of a text that is not known")
		return
	}
	inner := sc.wrapped(name)
	a.script(text, inner)
	sc.cwd, sc.known = inner.cwd, inner.known
}

func sourceFile(a *analyser, name string, args []word, sc *scope) {
	if len(args) > 0 {
		a.touchWord(args[0], "r", sc)
	}
	a.opaque(sc.wrapped(name), name+" runs a file")
	sc.known = false
	a.moved()
}

// valued are the options of wrappers that take a value of their own.
var valued = map[string]string{
	"exec": "a=v", "command": "", "builtin": "", "nohup": "", "setsid": "", "chronic": "", "catchsegv": "", "unbuffer": "", "fakeroot": "l=x i=r s=w", "caffeinate": "t=v w=v",
	"nice": "n=v adjustment=v", "ionice": "n=v c=v p=v", "stdbuf": "i=v o=v e=v input=v output=v error=v", "timeout": "k=v s=v kill-after=v signal=v",
	"time": "f=v o=w format=v output=w", "sudo": "u=v g=v h=v p=v C=v r=v t=v U=v T=v D=v R=v user=v group=v chdir=v", "doas": "u=v C=v", "taskset": "", "chrt": "T=v P=v D=v",
	"strace": "o=w e=v p=v s=v u=v E=v a=v P=v I=v O=v S=v b=v X=v", "ltrace": "o=w e=v p=v s=v u=v l=v n=v", "setarch": "", "linux32": "", "linux64": "", "prlimit": "p=v", "flock": "w=v E=v c=s",
}

// wrapper judges a program that starts the program named by its first operand.
func wrapper(a *analyser, name string, args []word, sc *scope) {
	head, rest := a.leading(valued[name], args, sc)
	inner := sc.wrapped(name)
	switch name {
	case "sudo", "doas":
		if head["i"] || head["s"] || head["login"] || head["shell"] || head["e"] || head["edit"] || head["D"] || head["chdir"] || head["R"] || head["chroot"] {
			a.opaque(inner, name+" with an option that starts a shell or moves")
		}
		for len(rest) > 0 && rest[0].known && strings.Contains(rest[0].text, "=") && !strings.HasPrefix(rest[0].text, "/") {
			a.variable(rest[0])
			rest = rest[1:]
		}
	case "timeout", "taskset", "chrt":
		rest = drop(rest)
	case "flock":
		if len(rest) > 0 {
			a.touchWord(rest[0], "w", sc)
		}
		rest = drop(rest)
		if len(rest) == 2 && rest[0].known && (rest[0].text == "-c" || rest[0].text == "--command") {
			a.option("s", rest[1], inner)
			return
		}
	case "setarch":
		rest = drop(rest)
	case "command":
		if head["v"] || head["V"] {
			return
		}
	case "exec":
		if len(rest) == 0 {
			return
		}
	}
	if len(rest) > 0 {
		a.run(rest, nil, inner)
		sc.cwd, sc.known = inner.cwd, inner.known
	}
}

func drop(args []word) []word {
	if len(args) > 0 {
		return args[1:]
	}
	return args
}

// leading reads options up to the first operand.
func (a *analyser) leading(table string, args []word, sc *scope) (hits map[string]bool, rest []word) {
	i := 0
	for i < len(args) && args[i].known && len(args[i].text) > 1 && args[i].text[0] == '-' && args[i].text != "--" {
		name := strings.TrimLeft(args[i].text, "-")
		takes := false
		for f := range strings.FieldsSeq(table) {
			flag, action, _ := strings.Cut(f, "=")
			if name == flag || !strings.HasPrefix(args[i].text, "--") && strings.HasSuffix(name, flag) && len(flag) == 1 && len(name) < 4 {
				takes = true
				if i+1 < len(args) {
					a.option(action, args[i+1], sc)
				}
			}
		}
		if takes {
			i++
		}
		i++
	}
	i = min(i, len(args))
	_, hits = a.options("", args[:i], sc)
	if i < len(args) && args[i].known && args[i].text == "--" {
		i++
	}
	return hits, args[i:]
}

// variable judges NAME=value that a wrapper puts into the environment.
func (a *analyser) variable(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	if selects(name) {
		a.dynamic("the variable " + name + " decides what runs")
	}
	if loads(name) {
		a.facts.Reads = appendNew(a.facts.Reads, value)
	}
}

func envWrapper(a *analyser, name string, args []word, sc *scope) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.known {
			a.opaque(sc.wrapped(name), "an argument of env is not known")
			return
		}
		switch {
		case strings.HasPrefix(w.text, "-S"), strings.HasPrefix(w.text, "--split-string"), strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "S") && !strings.HasPrefix(w.text, "--"):
			envSplit(a, name, args[i:], sc)
			return
		case w.text == "-u" || w.text == "--unset" || w.text == "-a" || w.text == "--argv0":
			i++
		case strings.HasPrefix(w.text, "-C"), strings.HasPrefix(w.text, "--chdir"):
			a.dynamic("env changes the folder")
			if w.text == "-C" || w.text == "--chdir" {
				i++
			}
		case strings.HasPrefix(w.text, "-") && w.text != "--":
		case w.text == "--":
		case strings.Contains(w.text, "="):
			a.variable(w)
		default:
			a.run(args[i:], nil, sc.wrapped(name).copy())
			return
		}
	}
}

// envSplit judges env -S 'command with arguments'.
func envSplit(a *analyser, name string, args []word, sc *scope) {
	text := strings.TrimPrefix(strings.TrimPrefix(args[0].text, "--split-string"), "=")
	if i := strings.IndexByte(text, 'S'); strings.HasPrefix(text, "-") && i > 0 {
		text = text[i+1:]
	}
	rest := args[1:]
	if text == "" && len(rest) > 0 {
		if !rest[0].known {
			a.opaque(sc.wrapped(name), "env splits a text that is not known")
			return
		}
		text, rest = rest[0].text, rest[1:]
	}
	// env's own quoting is almost the shell's; where they differ, what the
	// shell would do more of makes the script dynamic.
	if strings.ContainsAny(text, "$`;&|<>()#\\") {
		a.opaque(sc.wrapped(name), "env splits a text that is not simple")
		return
	}
	var words []word
	for f := range strings.FieldsSeq(strings.NewReplacer(`"`, "", `'`, "").Replace(text)) {
		words = append(words, word{text: f, known: true})
	}
	envWrapper(a, name, append(words, rest...), sc)
}

func xargs(a *analyser, name string, args []word, sc *scope) {
	table := "a=r arg-file=r I=v i=v? n=v max-args=v P=v max-procs=v L=v d=v delimiter=v E=v s=v replace=v? J=v R=v S=v j=v"
	i := 0
	for i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-") && args[i].text != "--" {
		end := i + 1
		if t := args[i].text; len(t) == 2 && strings.Contains("aInPLdEsJRSj", t[1:]) || slices.Contains([]string{"--arg-file", "--max-args", "--max-procs", "--delimiter"}, t) {
			end = min(end+1, len(args))
		}
		a.options(table, args[i:end], sc)
		i = end
	}

	if i < len(args) && args[i].known && args[i].text == "--" {
		i++
	}
	rest := slices.Clone(args[i:])
	if mark := placeholder(args[:i]); mark != "" {
		for j, w := range rest {
			if w.known && strings.Contains(w.text, mark) {
				rest[j] = word{}
			}
		}
	}
	a.dynamic(name + " takes arguments from its input")
	if len(rest) == 0 {
		if name == "parallel" {
			a.opaque(sc.wrapped(name), "parallel runs its input")
			return
		}
		rest = []word{{text: "echo", known: true}}
	}
	if name == "parallel" {
		a.opaque(sc.wrapped(name), "parallel runs its arguments through a shell")
	}
	a.run(append(rest, word{split: true}), nil, sc.wrapped(name))
}

// placeholder is what xargs -I replaces by its input, or "".
func placeholder(options []word) string {
	for i, w := range options {
		switch t := w.text; {
		case t == "-I" && i+1 < len(options):
			return options[i+1].text
		case strings.HasPrefix(t, "-I"):
			return t[2:]
		case strings.HasPrefix(t, "-i"), strings.HasPrefix(t, "--replace"):
			if _, mark, ok := strings.Cut(t, "="); ok {
				return mark
			}
			return "{}"
		}
	}
	return ""
}

func watch(a *analyser, name string, args []word, sc *scope) {
	_, rest := a.leading("n=v interval=v q=v", args, sc)
	text, ok := join(rest)
	if !ok || len(rest) == 0 {
		a.opaque(sc.wrapped(name), "watch runs a text that is not known")
		return
	}
	a.script(text, sc.wrapped(name))
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
		a.opaque(inner, reason)
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
			once(name + " runs a file")
			return
		}
	}
	once(name + " reads commands from its input")
}

// commandText judges what follows -c: options may still come before the text.
func (a *analyser) commandText(args []word, sc *scope, name string) {
	for len(args) > 0 && args[0].known && len(args[0].text) > 1 && args[0].text[0] == '-' {
		if strings.ContainsAny(args[0].text, "lisoO") {
			a.opaque(sc, name+" with more options behind -c")
		}
		args = args[1:]
	}
	if len(args) == 0 || !args[0].known {
		a.opaque(sc, name+" -c runs a text that is not known")
		return
	}
	a.script(args[0].text, sc.copy())
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
	if !args[0].known {
		a.opaque(sc.wrapped(name), "a trap whose text is not known")
		return
	}
	// It runs in the folder that the script is in by then.
	a.trapped = true
	a.script(args[0].text, sc.wrapped(name).copy())
}

func find(a *analyser, name string, args []word, sc *scope) {
	i := 0
	for i < len(args) && args[i].known && (args[i].text == "-H" || args[i].text == "-L" || args[i].text == "-P" || strings.HasPrefix(args[i].text, "-O") || args[i].text == "-D") {
		if args[i].text == "-D" {
			i++
		}
		i++
	}
	var roots []word
	for i < len(args) && (!args[i].known || !strings.HasPrefix(args[i].text, "-") && args[i].text != "(" && args[i].text != "!") {
		if !args[i].known && args[i].split {
			a.dynamic("an argument of find is not known")
		}
		roots = append(roots, args[i])
		i++
	}
	if len(roots) == 0 {
		roots = []word{{text: ".", known: true}}
	}
	a.operands("r", roots, sc)
	for ; i < len(args); i++ {
		if !args[i].known {
			if args[i].split {
				a.dynamic("an argument of find is not known")
			}
			continue
		}
		switch args[i].text {
		case "-delete":
			a.tree(roots, sc)
			a.operands("w", roots, sc)
			a.deleted(roots, sc)
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				a.touchWord(args[i+1], "w", sc)
			}
		case "-files0-from":
			a.dynamic("find reads its roots from a file")
		case "-newer", "-samefile":
			i++
		case "-exec", "-execdir", "-ok", "-okdir":
			i = a.findExec(name, args, i, roots, sc)
		}
	}
}

// findExec judges find -exec up to ; or +, with the found path as unknown.
func (a *analyser) findExec(name string, args []word, at int, roots []word, sc *scope) int {
	end := at + 1
	var cmd []word
	for end < len(args) && !(args[end].known && (args[end].text == ";" || args[end].text == "+")) {
		w := args[end]
		if strings.Contains(w.text, "{}") {
			w = word{split: strings.Contains(args[at].text, "ok")}
			a.dynamic("find hands over what it finds")
		}
		cmd = append(cmd, w)
		end++
	}
	a.tree(roots, sc)
	inner := sc.wrapped(name)
	if strings.HasSuffix(args[at].text, "dir") {
		inner.known = false
	}
	a.run(cmd, nil, inner)
	return end
}

func sed(a *analyser, _ string, args []word, sc *scope) {
	files, hits := a.options("e=v expression=v f=r file=r l=v i=W in-place=W", args, sc)
	hasScript := hits["e"] || hits["expression"] || hits["f"] || hits["file"]
	if hits["f"] || hits["file"] {
		a.opaque(sc, "a sed script in a file")
	}
	for i, w := range args {
		if w.known && (w.text == "-e" || w.text == "--expression") && i+1 < len(args) {
			a.sedScript(args[i+1], sc)
		} else if w.known && strings.HasPrefix(w.text, "-") && hits["e"] && len(w.text) > 2 && strings.Contains(w.text, "e") {
			a.sedScript(word{text: w.text[strings.Index(w.text, "e")+1:], known: true}, sc)
		} else if w.known && strings.HasPrefix(w.text, "--e") && strings.Contains(w.text, "=") {
			_, script, _ := strings.Cut(w.text, "=")
			a.sedScript(word{text: script, known: true}, sc)
		}
	}
	if !hasScript && len(files) > 0 {
		a.sedScript(files[0], sc)
		files = files[1:]
	}
	mode := "r"
	if hits["W"] {
		mode = "rw"
	}
	a.operands(mode, files, sc)
}

// sedScript accepts the scripts that neither run nor write anything: addresses
// with p, d, q, =, and substitutions whose flags are g, p, i, I, m and numbers.
func (a *analyser) sedScript(w word, sc *scope) {
	if !w.known {
		a.opaque(sc, "a sed script that is not known")
		return
	}
	for _, part := range sedParts(w.text) {
		if !harmlessSed(part) {
			a.opaque(sc, "a sed script that may run or write something")
			return
		}
	}
}

// opaqueProgram is a program that starts others in ways of its own.
func opaqueProgram(a *analyser, name string, args []word, sc *scope) {
	switch name {
	case "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "fc", "history":
		if len(args) == 0 {
			return
		}
		a.dynamic(name + " changes what names mean")
		return
	case "man":
		pages, hits := a.options("P=x pager=x C=r config-file=r M=v S=v s=v", args, sc)
		if hits["l"] || hits["local-file"] {
			a.operands("r", pages, sc)
			return
		}
		for _, w := range args {
			if w.known && !hits["P"] && strings.Contains(w.text, "/") {
				a.operands("r", []word{w}, sc)
			}
		}
		return
	case "less", "more":
		if _, hits := a.options("P=x pager=x k=x o=w H=x", args, sc); !hits["P"] {
			a.operands("r", args, sc)
		}
		return
	case "make", "gmake", "cmake", "ninja":
		for _, w := range args {
			if !w.known || strings.Contains(w.text, "=") || strings.HasPrefix(w.text, "--eval") || strings.HasPrefix(w.text, "-E") {
				a.dynamic("an argument of " + name + " decides what runs")
			}
			if w.known {
				a.operand(w.text, sc)
			}
		}
		return
	case "docker", "podman", "nerdctl", "kubectl", "ssh", "mosh", "npx", "bunx", "uvx", "pipx", "socat", "openssl", "psql", "mysql":
		a.network(true)
	}
	if len(args) == 1 && args[0].known && (args[0].text == "--version" || args[0].text == "--help") {
		return
	}
	a.opaque(sc.wrapped(name), name+" starts programs of its own")
}
