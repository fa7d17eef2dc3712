package shell

import (
	"path"
	"slices"
	"strings"
)

// perhapsLimit bounds the words of one command that are taken for programs.
const perhapsLimit = 16

// perhaps takes each argument of an opaque command for a program that it starts with the
// arguments behind it. One that names a shell or an interpreter counts as started; of the
// others, the reader of the facts knows whether a rule speaks of them. What stands inside
// of the arguments in front of it is noted, too.
func (a *analyser) perhaps(name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	before := args
	defer func() { a.embedded(before, inner) }()
	argv := make([]string, len(args))
	for i, w := range args {
		argv[i] = w.shown()
	}
	if slices.ContainsFunc(args, sends) {
		a.network(true)
	}
	for i, w := range args {
		if i == perhapsLimit {
			return
		}
		program := path.Base(w.text)
		if !w.known || w.glob || w.text == "" || w.text[0] == '-' || isNumber(program) || program == "." || program == "/" {
			continue
		}
		if runsText(program) {
			before = args[:i]
			a.starts(args[i:], inner)
			return
		}
		a.facts.Maybe = append(a.facts.Maybe, Command{Name: program, Argv: argv[i:], Wrappers: inner.wrappers})
	}
}

// sendingWords say of a program that is not known that it sends something to others.
var sendingWords = []string{"publish", "deploy", "upload", "push", "send", "share", "release", "sync", "beam"}

// sends reports whether a word tells a program to send something: publish, and :lib:publish
// or publishToMavenLocal as build tools call it.
func sends(w word) bool {
	last := w.text[strings.LastIndexByte(w.text, ':')+1:]
	return w.known && (slices.Contains(sendingWords, last) || strings.HasPrefix(last, "publishTo") || strings.HasPrefix(last, "publishAll"))
}

// shells are programs that run commands in a language like that of sh.
var shells = []string{
	"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "mksh", "rbash", "csh", "tcsh", "busybox", "toybox",
	"ksh93", "rksh", "oksh", "loksh", "lksh", "yash", "posh", "sash", "rc", "es", "elvish", "xonsh", "nu", "pwsh", "powershell",
}

// interpreters run programs that their arguments, a file or their input hold.
var interpreters = []string{
	"python", "python2", "python3", "pypy", "pypy3", "ipython", "ipython3", "perl", "ruby", "irb", "pry", "node", "nodejs", "deno", "bun", "php", "lua", "luajit",
	"Rscript", "R", "osascript", "tclsh", "wish", "expect", "guile", "julia", "octave", "octave-cli", "ghci", "runghc", "erl", "iex", "elixir", "scala", "groovy", "jjs", "jrunscript", "jshell", "gawk",
}

// runsText reports whether a program is a shell or an interpreter.
func runsText(name string) bool {
	return slices.Contains(shells, name) || slices.Contains(interpreters, name) || strings.HasPrefix(name, "python3.") || strings.HasPrefix(name, "perl5")
}
