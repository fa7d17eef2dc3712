package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	gitNetwork = []string{"fetch", "pull", "push", "clone", "ls-remote", "submodule"}
	gitWrites  = []string{"checkout", "switch", "restore", "reset", "clean", "stash", "merge", "rebase", "pull", "cherry-pick", "revert", "apply", "am", "sparse-checkout"}
	gitReads   = []string{
		"status", "log", "diff", "show", "branch", "tag", "rev-parse", "ls-files", "blame", "describe", "shortlog", "reflog", "cat-file", "add", "commit", "rm", "mv",
		"init", "remote", "grep", "ls-tree", "rev-list", "merge-base", "name-rev", "show-ref", "format-patch", "worktree", "archive", "gc", "fsck", "count-objects",
		"notes", "version", "help", "check-ignore", "diff-tree", "for-each-ref", "whatchanged", "range-diff",
	}
	// gitPrograms are options that name a program; git accepts them cut short.
	gitPrograms = []string{
		"--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--open-files-in-pager", "--config", "--config-env", "--template", "--textconv", "--exec-path",
		"--gpg-sign", "--tool", "--extcmd", "--remote", "--strategy",
	}
)

func git(a *analyser, name string, args []word, sc *scope) {
	defer func(n int) { a.disturbed = a.disturbed || len(a.facts.Writes) > n }(len(a.facts.Writes))
	inner := sc.copy()
	i := 0
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-"); i++ {
		switch t := args[i].text; {
		case t == "-C":
			i++
			if i < len(args) {
				a.enters(args[i], inner)
			}
		case t == "--no-pager" || t == "-P" || t == "--bare" || t == "--literal-pathspecs" || t == "--no-optional-locks" || t == "--version" || t == "--help":
		default:
			a.opaque(sc.wrapped(name), "the option "+t+" of git decides what runs")
			return
		}
	}
	if i >= len(args) {
		return
	}
	sub := args[i]
	rest := args[i+1:]
	if !sub.known {
		a.opaque(sc.wrapped(name), "a git command that is not known")
		return
	}
	if slices.Contains(gitNetwork, sub.text) || sub.text == "remote" && len(rest) > 0 && rest[0].text == "update" {
		named := a.named
		defer func() { a.network(a.named == named || gitElsewhere(rest)) }()
	}
	if reason := gitLaunches(sub.text, rest); reason != "" {
		a.opaque(sc.wrapped(name), reason)
		return
	}
	a.gitArguments(sub.text, rest, inner)
	a.repository(sub.text, rest, inner)
	if sub.text == "grep" || sub.text == "archive" {
		a.tree([]word{{text: ".", known: true}}, inner)
	}
	if slices.Contains(gitWrites, sub.text) {
		a.write(".", inner)
	}
}

// gitElsewhere reports whether a command of git may connect to hosts that a repository
// names.
func gitElsewhere(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		return len(w.text) > 3 && slices.ContainsFunc([]string{"--all", "--multiple", "--recurse-submodules", "--recursive", "--remote-submodules"}, func(o string) bool {
			name, _, _ := strings.Cut(w.text, "=")
			return strings.HasPrefix(o, name)
		})
	})
}

// gitLaunches returns why a git command may start a program, or "".
func gitLaunches(sub string, args []word) string {
	if !slices.Contains(gitNetwork, sub) && !slices.Contains(gitWrites, sub) && !slices.Contains(gitReads, sub) || sub == "submodule" {
		return "git " + sub + " may start a program"
	}
	for _, w := range args {
		if !w.known {
			continue
		}
		t, _, _ := strings.Cut(w.text, "=")
		if strings.HasPrefix(t, "--") && len(t) > 3 {
			for _, p := range gitPrograms {
				if strings.HasPrefix(p, t) && !(t == "--no" || t == "--text") {
					return "the option " + t + " of git names a program"
				}
			}
		}
		switch {
		case sub == "grep" && strings.HasPrefix(t, "-O"),
			(sub == "clone" || sub == "ls-remote" || sub == "fetch") && (strings.HasPrefix(t, "-u") || t == "-c"),
			sub == "rebase" && strings.HasPrefix(t, "-x"), sub == "rebase" && strings.HasPrefix(t, "-i"), strings.Contains(w.text, "ext::"),
			(sub == "commit" || sub == "tag") && strings.HasPrefix(t, "-S"):
			return "the argument " + t + " of git starts a program"
		}
	}
	return ""
}

// gitFiles are options of git whose value is a file; write: git writes it. A letter may
// have its value attached, a word may be shortened.
var gitFiles = []struct {
	sub, option string
	write       bool
}{
	{"", "--output", true},
	{"archive", "-o", true},
	{"format-patch", "-o", true},
	{"format-patch", "--output-directory", true},
	{"commit", "-F", false},
	{"commit", "--file", false},
	{"commit", "-t", false},
	{"commit", "--template", false},
	{"commit", "--pathspec-from-file", false},
	{"tag", "-F", false},
	{"tag", "--file", false},
	{"notes", "-F", false},
	{"notes", "--file", false},
	{"merge", "-F", false},
	{"merge", "--file", false},
	{"blame", "--contents", false},
	{"blame", "-S", false},
	{"blame", "--ignore-revs-file", false},
	{"grep", "-f", false},
	{"archive", "--add-file", false},
	{"add", "--pathspec-from-file", false},
	{"checkout", "--pathspec-from-file", false},
	{"ls-files", "-X", false},
	{"ls-files", "--exclude-from", false},
	{"diff", "-O", false},
	{"show", "-O", false},
	{"log", "-O", false},
	{"apply", "--build-fake-ancestor", true},
}

// gitFile notes the file that an option of git names.
func (a *analyser) gitFile(sub string, at int, args []word, sc *scope) {
	for _, f := range gitFiles {
		if f.sub != "" && f.sub != sub {
			continue
		}
		value, ok := optionValue(f.option, at, args)
		switch {
		case !ok:
		case f.write:
			a.touchWord(value, "w", sc)
		default:
			a.touchWord(value, "r", sc)
		}
	}
}

// optionValue returns the value of an option, if it is the one at args[at].
func optionValue(option string, at int, args []word) (value word, ok bool) {
	w := args[at]
	name, text, attached := strings.Cut(w.text, "=")
	switch {
	case strings.HasPrefix(option, "--"):
		ok = len(name) > 4 && strings.HasPrefix(option, name)
	case w.text == option:
		ok, attached = true, false
	case strings.HasPrefix(w.text, option):
		ok, attached, text = true, true, w.text[len(option):]
	}
	switch {
	case !ok:
		return word{}, false
	case attached:
		return word{text: text, known: true, glob: w.glob}, true
	case at+1 < len(args):
		return args[at+1], true
	}
	return word{}, false
}

func (a *analyser) gitArguments(sub string, args []word, sc *scope) {
	repository := false // the first operand has been seen
	for i, w := range args {
		if w.known {
			a.gitFile(sub, i, args, sc)
		}
		text := i > 0 && args[i-1].known && slices.Contains([]string{"-m", "--message", "--author", "--date", "-am"}, args[i-1].text)
		switch {
		case !w.known:
			if !(text && !w.split) {
				a.dynamic("an argument of git is not known")
			}
		case text:
		case strings.HasPrefix(w.text, "-"):
			if _, to, ok := strings.Cut(w.text, "="); ok && sub == "push" && strings.HasPrefix(w.text, "--rep") {
				a.hostOf(to)
				a.remote(to)
			}
		case sub == "mv":
			a.read(w.text, sc)
			a.write(w.text, sc)
			a.tree([]word{w}, sc)
		case sub == "rm":
			a.write(w.text, sc)
		case sub == "apply" || sub == "am":
			a.read(w.text, sc)
		case slices.Contains(gitNetwork, sub):
			a.hostOf(w.text)
			// What follows the repository are names like HEAD:main.
			if !repository || strings.Contains(w.text, "@") {
				a.remote(w.text)
			}
			repository = repository || strings.Trim(w.text, "0123456789") != "" // no number of --depth
		default:
			a.operand(w.text, sc)
			if sub == "diff" && !sc.here.unknown { // it compares any two files
				a.word(w.text, sc)
			}
			if _, file, ok := strings.Cut(w.text, ":"); ok && file != "" && !strings.Contains(w.text, "://") {
				a.read(file, sc) // of a commit, or of the index
			}
		}
	}
	if sub == "clone" {
		var ops []word
		for _, w := range args {
			if w.known && !strings.HasPrefix(w.text, "-") {
				ops = append(ops, w)
			}
		}
		if len(ops) > 1 {
			a.write(ops[len(ops)-1].text, sc)
		} else if len(ops) == 1 {
			a.write(strings.TrimSuffix(path.Base(ops[0].text), ".git"), sc)
		}
	}
}

// sedParts splits a script at ; and newlines, outside of s/../../.
func sedParts(script string) []string {
	var parts []string
	start, delimiters := 0, 0
	var delimiter byte
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case delimiters > 0:
			if c == '\\' {
				i++
			} else if c == delimiter {
				delimiters--
			}
		case (c == 's' || c == 'y') && i+1 < len(script):
			delimiter, delimiters = script[i+1], 2
			i++
		case c == '/':
			delimiter, delimiters = '/', 1
		case c == ';' || c == '\n':
			parts = append(parts, script[start:i])
			start = i + 1
		}
	}
	return append(parts, script[start:])
}

var (
	sedAddress = `(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)?(?:,(?:\d+|\$|[+~]\d+|/(?:[^/\\\n]|\\.)*/I?))?\s*!?\s*`
	sedSimple  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*` + sedAddress + `[pdqQ=DGhHxnNP]?\s*\d*\s*$`)
	})
	sedReplace = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*` + sedAddress + `[sy]([^\sA-Za-z0-9\\])(.*)$`)
	})
	sedFlags = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[gpiIm0-9]*\s*$`)
	})
)

// harmlessSed reports whether one sed command neither runs nor reads nor writes anything.
func harmlessSed(part string) bool {
	if sedSimple().MatchString(part) {
		return true
	}
	m := sedReplace().FindStringSubmatch(part)
	if m == nil {
		return false
	}
	rest, seen := m[2], 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case m[1][0]:
			if seen++; seen == 2 {
				return sedFlags().MatchString(rest[i+1:])
			}
		}
	}
	return false
}

func awk(a *analyser, name string, args []word, sc *scope) {
	i := 0
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-") && args[i].text != "--"; i++ {
		switch t := args[i].text; {
		case t == "-F" || t == "-v" || t == "--assign" || t == "--field-separator":
			i++
		case strings.HasPrefix(t, "-F") || strings.HasPrefix(t, "-v"):
		default:
			a.opaque(sc.wrapped(name), "an option of awk that may load a program")
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
		a.opaque(sc.wrapped(name), "an awk program that may run or write something")
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

func tar(a *analyser, name string, args []word, sc *scope) {
	if len(args) == 0 {
		return
	}
	if args[0].known && args[0].text != "" && args[0].text[0] != '-' {
		args = append([]word{{text: "-" + args[0].text, known: true}}, args[1:]...)
	}
	mode, file, dir := byte(0), word{}, word{text: ".", known: true}
	var members []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		next := func() word {
			if i++; i < len(args) {
				return args[i]
			}
			return word{}
		}
		switch t := w.text; {
		case !w.known || !strings.HasPrefix(t, "-") || t == "-":
			members = append(members, w)
		case strings.HasPrefix(t, "--"):
			key, value, has := strings.Cut(t, "=")
			val := word{text: value, known: true}
			switch key {
			case "--file", "--directory":
				if !has {
					val = next()
				}
				if key == "--file" {
					file = val
				} else {
					dir = val
				}
			case "--extract", "--get":
				mode = 'x'
			case "--create":
				mode = 'c'
			case "--list":
				mode = 't'
			case "--append", "--update", "--delete":
				mode = 'r'
			case "--verbose", "--gzip", "--bzip2", "--xz", "--zstd", "--strip-components", "--exclude", "--wildcards", "--no-same-owner", "--numeric-owner", "--auto-compress", "--version", "--help":
			default:
				a.opaque(sc.wrapped(name), "the option "+key+" of tar")
				return
			}
		default:
			for j := 1; j < len(t); j++ {
				switch t[j] {
				case 'x', 'c', 't', 'r', 'u':
					mode = t[j]
				case 'f', 'C':
					val := word{text: t[j+1:], known: true}
					if val.text == "" || i == 0 && t[j] == 'f' && j < len(t)-1 && !strings.HasPrefix(args[0].text, "--") && strings.Trim(val.text, "xctruvzjJahpkmw") == "" {
						val = next()
						if t[j] == 'f' {
							file = val
						} else {
							dir = val
						}
						continue
					}
					if t[j] == 'f' {
						file = val
					} else {
						dir = val
					}
					j = len(t)
				case 'P':
					a.dynamic("tar keeps absolute names")
				case 'I', 'F':
					a.opaque(sc.wrapped(name), "an option of tar that names a program")
					return
				case 'T', 'X', 'g', 'b', 'H', 'K', 'L', 'N', 'V':
					a.dynamic("an option of tar that is not understood")
					next()
					j = len(t)
				}
			}
		}
	}
	if strings.Contains(file.text, ":") {
		a.network(false)
		a.remote(file.text)
	}
	a.tarPaths(mode, file, dir, members, sc)
}

func (a *analyser) tarPaths(mode byte, file, dir word, members []word, sc *scope) {
	a.disturbed = true
	switch mode {
	case 'x':
		if file.known {
			a.read(file.text, sc)
		} else if file.split {
			a.unknownPath(false)
		}
		a.touchWord(dir, "w", sc)
	case 't':
		if file.known {
			a.read(file.text, sc)
		} else if file.split {
			a.unknownPath(false)
		}
	case 'c', 'r', 'u':
		if file.known {
			a.write(file.text, sc)
		} else if file.split {
			a.unknownPath(true)
		}
		from := sc.copy()
		if dir.text != "." || !dir.known {
			a.enters(dir, from)
		}
		a.operands("r", members, from)
		a.tree(members, from)
	default:
		a.dynamic("tar without a mode")
	}
}

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
		a.opaque(sc.wrapped(name), "rsync as a daemon")
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

func interpreter(a *analyser, name string, args []word, sc *scope) {
	python := strings.HasPrefix(name, "py")
	for i, w := range args {
		switch {
		case !w.known:
			a.opaque(sc.wrapped(name), name+" runs something that is not known")
			return
		case slices.Contains([]string{"--version", "-V", "--help", "-h"}, w.text) || name == "node" && w.text == "-v" || name == "php" && w.text == "-v" || name == "java" && w.text == "-version":
			return
		case python && slices.Contains([]string{"-u", "-B", "-I", "-s", "-E", "-O", "-OO", "-q", "-S"}, w.text), name == "perl" && (w.text == "-w" || w.text == "-c"), name == "php" && w.text == "-l":
		case python && w.text == "-m" && i+1 < len(args) && args[i+1].known:
			a.module(args[i+1].text, args[i+2:], sc)
			return
		case strings.HasPrefix(w.text, "-"):
			a.opaque(sc.wrapped(name), name+" with code in its arguments")
			return
		default:
			a.read(w.text, sc)
			a.foreign(args[i+1:], sc)
			return
		}
	}
	a.opaque(sc.wrapped(name), name+" reads its program from its input")
}

func (a *analyser) module(name string, args []word, sc *scope) {
	switch name {
	case "pip":
		packages(a, "pip", args, sc)
	case "http.server":
		a.network(true)
	case "pytest", "unittest", "venv", "json.tool", "mypy", "black", "ruff", "flake8", "build", "compileall":
		a.foreign(args, sc)
	default:
		a.opaque(sc.wrapped("python"), "a python module that is not known")
	}
}

// packages judges package managers and build tools: what they fetch goes over
// the network, what the project itself defines is the project's.
func packages(a *analyser, name string, args []word, sc *scope) {
	a.disturbed = true
	a.worksIn(name, args, sc)
	for _, w := range args {
		if !w.known && !w.number {
			a.dynamic("an argument of " + name + " is not known")
		}
		for _, p := range []string{"-exec", "-toolexec", "-vettool", "-overlay", "--exec", "--script-shell", "--config", "-modfile", "--manifest-path", "--prefix", "--target", "--root"} {
			if t, _, _ := strings.Cut(strings.Replace(w.text, "--", "-", 1), "="); w.known && (t == p || "-"+t == p) {
				a.opaque(sc.wrapped(name), "the option "+p+" of "+name)
				return
			}
		}
		if w.known {
			a.operand(argument(w.text), sc)
			a.hostOf(w.text)
		}
	}
	sub := ""
	for _, w := range args {
		if w.known && !strings.HasPrefix(w.text, "-") {
			sub = w.text
			break
		}
	}
	switch sub {
	case "exec", "x", "dlx", "create", "init", "explore", "node":
		if name != "go" && name != "cargo" {
			a.network(true)
			a.opaque(sc.wrapped(name), name+" "+sub+" runs a package")
		}
	case "install", "i", "ci", "add", "update", "upgrade", "publish", "get", "download", "fetch", "audit", "outdated", "view", "search", "mod", "uninstall", "remove", "tidy", "sync", "require", "push", "login":
		a.network(true)
		if name == "apt" || name == "apt-get" || name == "apk" || name == "dnf" || name == "yum" {
			a.write("/", sc)
			return
		}
		a.write(".", sc)
	case "":
		if name == "yarn" {
			a.network(true)
			a.write(".", sc)
		}
	}
	if name == "go" && (sub == "build" || sub == "test") {
		a.options("o=w coverprofile=w cpuprofile=w memprofile=w outputdir=w C=v run=v bench=v tags=v count=v timeout=v", args, sc)
	}
	if name == "go" && (sub == "generate" || (sub == "env" || sub == "run" || sub == "tool") && len(args) > 1) {
		a.opaque(sc.wrapped(name), "go "+sub+" runs or changes programs")
	}
}
