package shell

import (
	"slices"
	"strings"
)

// launcher describes a program that starts the program named by its operands.
type launcher struct {
	options optionTable
	// before is the number of operands in front of the program.
	before int
	// unless are options with which the program starts nothing.
	unless []string
	// shell: without an operand it starts a shell.
	shell bool
	// within: it is a builtin which runs the command in the shell itself.
	within bool
}

const (
	straceOptions = "a: b: e: E: I: o:w O: p: P: s: S: u: U: X: A c C d D f F h i k n N q r t T v V w x y Y z Z " +
		"columns: detach-on: trace: env: interruptible: output:w attach: trace-path: string-limit: summary-sort-by: user: summary-columns: const-print-style: " +
		"abbrev: verbose: raw: signal: status: read: write: fault: inject: kvm: quiet:: decode-fds:: decode-pids: output-append-mode summary-only summary daemonize:: follow-forks " +
		"output-separately instruction-pointer stack-traces relative-timestamps:: absolute-timestamps:: timestamps:: syscall-times:: no-abbrev summary-wall-clock " +
		"strings-in-hex:: successful-only failed-only syscall-limit: argv0: tips:: help version seccomp-bpf always-show-pid syscall-number"
	sudoOptions = "A b B E e H h: i K k l n N P p: C: c: D:C R:x g: r: t: T: U: u: s S V v askpass background bell preserve-env:: edit set-home help login remove-timestamp reset-timestamp " +
		"list non-interactive no-update preserve-groups prompt: close-from: login-class: chdir:C chroot:x group: role: type: command-timeout: other-user: user: shell stdin version validate host:"
	setarchOptions = "B F I L R S T X Z 3 v h V p: 32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize whole-seconds sticky-timeouts read-implies-exec mmap-page-zero 3gb 4gb " +
		"uname-2.6 verbose list show:: pid: help version"
)

// launchers are the wrappers whose options are known. A table holds all options of
// the versions in use: with one that is not in it, the command is unknown.
var launchers = map[string]launcher{
	"exec": {options: "c l a:", within: true}, "command": {options: "p v V", unless: []string{"v", "V"}, within: true}, "builtin": {within: true},
	"nohup": {options: "help version"}, "setsid": {options: "c f w V h ctty fork wait version help"}, "chronic": {options: "v e"}, "catchsegv": {}, "unbuffer": {options: "p"},
	"nice": {options: "n: adjustment: help version"}, "stdbuf": {options: "i: o: e: input: output: error: help version"},
	"ionice":  {options: "c: n: p: P: u: t h V class: classdata: pid: pgid: uid: ignore help version", unless: []string{"p", "P", "u", "pid", "pgid", "uid"}},
	"timeout": {options: "k: s: f p v kill-after: signal: foreground preserve-status verbose help version", before: 1},
	"time":    {options: "f: o:w a p q v V format: output:w append portability quiet verbose help version"},
	"taskset": {options: "a p c h V all-tasks pid cpu-list help version", before: 1, unless: []string{"p", "pid"}},
	"chrt": {
		options: "a b d e f i m o p r R v T: P: D: h V all-tasks batch deadline ext fifo idle max other pid rr reset-on-fork verbose sched-runtime: sched-period: sched-deadline: help version",
		before:  1, unless: []string{"p", "pid", "m", "max"},
	},
	"strace": {options: straceOptions}, "ltrace": {options: "a: A: b c C D: e: f F: i l: L n: o:w p: r s: S t T u: V w: x: h demangle output:w config: library: indent: debug: where: help version"},
	"prlimit": {
		options: "p: o: c:: d:: e:: f:: i:: l:: m:: n:: q:: r:: s:: t:: u:: v:: x:: y:: h V pid: output: noheadings raw verbose core:: data:: nice:: fsize:: sigpending:: memlock:: rss:: nofile:: msgqueue:: " +
			"rtprio:: stack:: cpu:: nproc:: as:: locks:: rttime:: help version",
		unless: []string{"p", "pid"},
	},
	"fakeroot": {options: "l:x i:r s:w b: u h v lib:x faked:x unknown-is-real fd-base: help version", shell: true},
	"setarch":  {options: setarchOptions, shell: true}, "linux32": {options: setarchOptions, shell: true}, "linux64": {options: setarchOptions, shell: true},
	"i386": {options: setarchOptions, shell: true}, "i486": {options: setarchOptions, shell: true}, "i586": {options: setarchOptions, shell: true}, "i686": {options: setarchOptions, shell: true},
	"x86_64": {options: setarchOptions, shell: true}, "uname26": {options: setarchOptions, shell: true},
	"flock":      {options: "s x e u n w: o E: F h V shared exclusive unlock nb nonblock nonblocking wait: timeout: close conflict-exit-code: no-fork fcntl verbose help version", before: 1},
	"sudo":       {options: sudoOptions, unless: []string{"l", "list", "v", "validate", "K", "k", "V", "version"}},
	"doas":       {options: "L n s C: u: a:"},
	"caffeinate": {options: "d i m s u t: w:"},
}

// launch judges a program that starts another one.
func launch(a *analyser, name string, args []word, sc *scope) {
	l := launchers[name]
	inner := sc.wrapped(name)
	if name == "nice" {
		args = niceness(args)
	}
	var architecture []word
	if name == "setarch" && len(args) > 0 && args[0].known && !strings.HasPrefix(args[0].text, "-") {
		architecture, args = args[:1], args[1:]
	}
	p, ok := l.options.parse(args, stopAtOperand)
	if !ok {
		a.unresolved(inner, "an option of "+name+" that is not known")
		// What a rule refuses wherever it is must not hide behind the option.
		a.maybeStarts(args, inner)
		return
	}
	if p.has("help", "version") || len(p.operands) == 0 && len(architecture) == 0 && !l.shell && len(p.options) == 0 {
		return
	}
	for _, o := range p.options {
		a.launchOption(name, o, inner)
	}
	if p.has(l.unless...) && !(name == "sudo" && len(p.operands) > 0) {
		return
	}
	rest := p.operands
	switch name {
	case "sudo", "doas":
		if p.has("i", "s", "login", "shell", "e", "edit") {
			a.unresolved(inner, name+" with an option that starts a shell or an editor")
		}
		for len(rest) > 0 && rest[0].known && strings.Contains(rest[0].text, "=") && !strings.HasPrefix(rest[0].text, "/") {
			a.environment(rest[0], inner)
			rest = rest[1:]
		}
	case "flock":
		if len(rest) > 0 {
			a.touchWord(rest[0], "w", sc)
		}
	}
	if len(rest) < l.before {
		rest = nil
	} else {
		rest = rest[l.before:]
	}
	if name == "flock" && len(rest) > 1 && rest[0].known && (rest[0].text == "-c" || rest[0].text == "--command") {
		a.option("s", rest[1], inner)
		return
	}
	switch {
	case len(rest) == 0 && l.shell:
		a.unresolved(inner, name+" starts a shell")
	case len(rest) == 0:
	case l.within:
		a.run(rest, nil, inner)
		sc.take(inner)
	default:
		a.starts(rest, inner)
	}
}

// starts analyses a program that another program starts: a builtin that would change the
// shell has no effect there.
func (a *analyser) starts(args []word, inner *scope) {
	a.run(args, nil, inner.copy())
}

// maybeStarts judges each argument as the program that is started.
func (a *analyser) maybeStarts(args []word, sc *scope) {
	for i, w := range args {
		if i > 8 {
			return
		}
		if w.known && !w.glob && plausible(w.text) {
			a.starts(args[i:], sc)
		}
	}
}

// plausible reports whether a text may be the name of a known program.
func plausible(text string) bool {
	return text != "" && text[0] != '-' && !isNumber(text) && isKnown(text[strings.LastIndexByte(text, '/')+1:])
}

// niceness rewrites the old form of nice's option, a number behind - or --.
func niceness(args []word) []word {
	for i, w := range args {
		if !w.known || len(w.text) < 2 || w.text[0] != '-' {
			return args
		}
		if isNumber(strings.TrimLeft(w.text, "-+")) {
			args = slices.Clone(args)
			args[i] = word{text: "-n" + w.text[1:], known: true}
		}
		if w.text == "-n" || strings.HasPrefix(w.text, "--a") && !strings.Contains(w.text, "=") {
			return args
		}
	}
	return args
}

// launchOption judges the value of an option.
func (a *analyser) launchOption(name string, o option, sc *scope) {
	switch o.kind {
	case "r", "w":
		a.touchWord(o.value, o.kind, sc)
	case "s":
		a.option("s", o.value, sc)
	case "x":
		a.unresolved(sc, "the option "+o.name+" of "+name+" names a program")
	case "C":
		a.enters(o.value, sc)
	}
	switch {
	case name == "strace" && (o.name == "E" || o.name == "env"):
		a.environment(o.value, sc)
	case name == "strace" && (o.name == "o" || o.name == "output") && strings.HasPrefix(strings.TrimSpace(o.value.text), "|"), strings.HasPrefix(o.value.text, "!") && name == "strace":
		a.unresolved(sc, "strace writes to a program")
	case name == "ltrace" && (o.name == "F" || o.name == "config"):
		a.unresolved(sc, "ltrace reads settings that name programs")
	}
}

const envOptions = "i 0 u: C:C S: v a: ignore-environment null unset: chdir:C split-string: debug argv0: block-signal:: default-signal:: ignore-signal:: list-signal-handling help version"

// envWrapper judges env: options, then variables, then a program.
func envWrapper(a *analyser, name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	for depth := 0; ; depth++ {
		p, ok := optionTable(envOptions).parse(args, stopAtOperand)
		if !ok || depth > depthLimit {
			a.unresolved(inner, "an option of env that is not known")
			a.maybeStarts(args, inner)
			return
		}
		split := slices.IndexFunc(p.options, func(o option) bool { return o.name == "S" || o.name == "split-string" })
		if split < 0 {
			a.envCommand(p, inner)
			return
		}
		words, known := splitString(p.options[split].value)
		if !known {
			a.unresolved(inner, "env splits a text that is not known")
			return
		}
		for _, o := range p.options[:split] {
			a.envOption(o, inner)
		}
		// What follows the option stays behind the words of the text.
		args = append(words, args[p.options[split].after:]...)
	}
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
			words = append(words, v)
		}
		return words, true
	}
	var words []word
	for f := range strings.FieldsSeq(text) {
		words = append(words, literal(f))
	}
	return words, true
}

func (a *analyser) envOption(o option, sc *scope) {
	switch {
	case o.kind == "C":
		a.enters(o.value, sc)
	case (o.name == "u" || o.name == "unset") && (!o.value.known || selects(o.value.text)):
		a.dynamic("env removes a variable that decides what runs")
	}
}

func (a *analyser) envCommand(p parsed, inner *scope) {
	if p.has("help", "version") {
		return
	}
	for _, o := range p.options {
		a.envOption(o, inner)
	}
	rest := p.operands
	if len(rest) > 0 && rest[0].known && rest[0].text == "-" {
		rest = rest[1:] // the same as -i
	}
	for len(rest) > 0 {
		w := rest[0]
		switch {
		case !w.known:
			a.unresolved(inner, "an argument of env is not known")
			return
		case strings.Contains(w.text, "="):
			a.environment(w, inner)
			rest = rest[1:]
		default:
			a.starts(rest, inner)
			return
		}
	}
}

const xargsOptions = "0 a:r d: E: e:: I: i:: L: l:: n: o P: p r s: t x J: R: S: null arg-file:r delimiter: eof:: replace:: max-lines:: max-args: max-procs: open-tty interactive process-slot-var: " +
	"no-run-if-empty max-chars: show-limits verbose exit help version"

// xargs judges a program that starts another one with arguments from its input.
func xargs(a *analyser, name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	inner.input = nil
	if name == "parallel" {
		a.unresolved(inner, "parallel runs its arguments through a shell")
		a.maybeStarts(args, inner)
		return
	}
	p, ok := optionTable(xargsOptions).parse(args, stopAtOperand)
	if !ok {
		a.unresolved(inner, "an option of "+name+" that is not known")
		a.maybeStarts(args, inner)
		return
	}
	in, mark, divided := a.output(sc.input), "", false
	for _, o := range p.options {
		switch o.name {
		case "I", "J":
			mark = o.value.text
		case "i", "replace":
			mark = "{}"
			if o.value.known {
				mark = o.value.text
			}
		case "0", "null":
			divided = true
		case "d", "delimiter":
			divided = o.value.known && (o.value.text == `\n` || o.value.text == `\0`)
			if !divided { // a part of a name may be any other
				in = nil
			}
		case "a", "arg-file":
			in = nil
			a.launchOption(name, o, sc)
		case "process-slot-var":
			a.assigned(o.value, true, inner)
		default:
			a.launchOption(name, o, sc)
		}
	}
	rest := p.operands
	if len(rest) == 0 {
		rest = []word{literal("echo")}
	}
	given := []word{{split: mark == ""}}
	if in != nil {
		a.consumed(in, divided && in.zero, sc)
		given = in.words
	}
	if mark == "" {
		a.starts(append(slices.Clone(rest), several(given)...), inner)
		return
	}
	a.each(given, mark, rest, inner)
}

const watchOptions = "b c C d:: e f g q: n: p r s: t w x v h beep color no-color differences:: errexit follow chgexit equexit: interval: precise no-rerun shotsdir:w no-title no-wrap exec help version"

// watch joins its arguments and runs them in a shell.
func watch(a *analyser, name string, args []word, sc *scope) {
	inner := sc.wrapped(name)
	p, ok := optionTable(watchOptions).parse(args, stopAtOperand)
	text, joined := join(p.operands)
	switch {
	case !ok || !joined:
		a.unresolved(inner, "watch runs a text that is not known")
		a.maybeStarts(args, inner)
	case p.has("help", "version", "h", "v") || len(p.operands) == 0:
	case p.has("x", "exec"):
		a.starts(p.operands, inner)
	default:
		a.elsewhereRuns(text, inner)
	}
}
