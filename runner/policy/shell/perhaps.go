package shell

import "path"

// perhapsLimit bounds the words of one command that are taken for programs.
const perhapsLimit = 16

// perhaps takes each argument of an opaque command for a program that it starts with the
// arguments behind it. One that names a shell or an interpreter counts as started; of the
// others, the reader of the facts knows whether a rule speaks of them.
func (a *analyser) perhaps(name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	for i, w := range args {
		if i == perhapsLimit {
			return
		}
		program := path.Base(w.text)
		if !w.known || w.glob || w.text == "" || w.text[0] == '-' || isNumber(program) || program == "." || program == "/" {
			continue
		}
		if runsText(program) {
			a.starts(args[i:], inner)
			return
		}
		argv := a.facts.Commands[a.current].Argv[i+1:]
		a.facts.Maybe = append(a.facts.Maybe, Command{Name: program, Argv: argv, Wrappers: inner.wrappers})
	}
}

// runsText reports whether a program is a shell or an interpreter.
func runsText(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "mksh", "rbash", "csh", "tcsh", "busybox", "toybox":
		return true
	case "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "Rscript", "osascript", "tclsh", "deno", "bun", "pypy", "pypy3", "guile", "julia":
		return true
	}
	return false
}
