package shell

import (
	"regexp"
	"slices"
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

func rsync(a *analyser, name string, args []word, sc *scope) {
	a.disturbed = true
	ops, hits := a.options("e=x rsh=x rsync-path=x exclude=v include=v files-from=n exclude-from=r log-file=w filter=v out-format=v password-file=r backup-dir=w temp-dir=w T=w daemon=x", args, sc)
	if hits["daemon"] || hits["config"] {
		a.unresolved(sc.wrapped(name), "rsync as a daemon")
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
			a.unresolved(sc.wrapped(name), name+" runs something that is not known")
			return
		case slices.Contains([]string{"--version", "-V", "--help", "-h"}, w.text) || name == "node" && w.text == "-v" || name == "php" && w.text == "-v" || name == "java" && w.text == "-version":
			return
		case python && slices.Contains([]string{"-u", "-B", "-I", "-s", "-E", "-O", "-OO", "-q", "-S"}, w.text), name == "perl" && (w.text == "-w" || w.text == "-c"), name == "php" && w.text == "-l":
		case python && w.text == "-m" && i+1 < len(args) && args[i+1].known:
			a.module(args[i+1].text, args[i+2:], sc)
			return
		case strings.HasPrefix(w.text, "-"):
			a.unresolved(sc.wrapped(name), name+" with code in its arguments")
			return
		default:
			a.read(w.text, sc)
			a.foreign(args[i+1:], sc)
			return
		}
	}
	a.unresolved(sc.wrapped(name), name+" reads its program from its input")
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
		a.unresolved(sc.wrapped("python"), "a python module that is not known")
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
				a.unresolved(sc.wrapped(name), "the option "+p+" of "+name)
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
			a.unresolved(sc.wrapped(name), name+" "+sub+" runs a package")
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
		a.unresolved(sc.wrapped(name), "go "+sub+" runs or changes programs")
	}
}
