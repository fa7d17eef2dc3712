package shell

import (
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// tabled judges a command by the description of its program. The name is that of the
// program, with its subcommand.
func (a *analyser) tabled(p *programs.Program, name string, args []word, sc *scope) {
	g := argumentsOf(p, args)
	if g.informs(p) && g.unknown == "" {
		a.kept(p, g)
		return
	}
	if g.unknown != "" {
		defer a.opaque("the option " + g.unknown + " of " + name + " is not in the table of programs") // if nothing else is said
		a.perhaps(name, args, sc)
		for _, w := range args { // a value that is attached may be a file
			if strings.HasPrefix(w.text, "-") {
				a.foreign([]word{w}, sc)
			}
		}
	}
	if g.open && risky(p) {
		a.dynamic("an argument of " + name + " may be an option")
	}
	if g.more {
		a.dynamic("more arguments of " + name + " stand in a file")
	}
	a.steered(p, name)
	inner := sc.copy()
	named := a.named
	for _, v := range g.values {
		if v.kind = g.kindOf(p, v); v.kind == "filled" {
			a.rewrites(name, v.value, g, inner)
			continue
		}
		a.setting(name, v, inner)
	}
	switch module := slices.IndexFunc(g.values, func(v setting) bool { return v.kind == "module" }); {
	case p.Subcommands:
		a.general(p, name, g, inner)
		a.subcommand(name, g, inner)
	case module >= 0:
		a.general(p, name, g, inner)
		a.describedAs(p.Same+" -m", append([]word{g.values[module].value}, g.operands...), inner)
	default:
		if a.tabledOperands(p, name, g, inner) {
			sc.take(inner)
		}
		a.general(p, name, g, inner)
	}
	for _, r := range p.Rules {
		switch {
		case r.Verb == "network" && r.Holds(g.has):
			a.network(a.named == named)
		case r.Verb == "anywhere" && r.Holds(g.has):
			a.network(true)
		}
	}
}

// risky reports whether an option that is not known could do more than operands do.
func risky(p *programs.Program) bool {
	return slices.ContainsFunc(p.Options, func(o programs.Option) bool { return o.Value != "" && o.Value != "text" && o.Value != "word" }) ||
		slices.ContainsFunc(p.Rules, func(r programs.Rule) bool { return len(r.With)+len(r.Without) > 0 && r.Verb != "inert" })
}

// subcommand judges what the first operand names.
func (a *analyser) subcommand(name string, g *arguments, sc *scope) {
	if len(g.operands) > 0 {
		a.describedAs(name, g.operands, sc)
	}
}

// describedAs judges arguments whose first one names what they are told.
func (a *analyser) describedAs(name string, args []word, sc *scope) {
	if !args[0].known || args[0].glob {
		a.dynamic("the subcommand of " + name + " is not known")
		return
	}
	full := name + " " + args[0].text
	p, ok := programs.Find(full)
	if !ok {
		a.opaque(full + " is not in the table of programs")
		a.perhaps(name, args[1:], sc)
		a.foreign(args[1:], sc)
		return
	}
	a.tabled(p, full, args[1:], sc)
}

// steered checks whether the script itself has set what decides the program's work.
func (a *analyser) steered(p *programs.Program, name string) {
	env := a.facts.Commands[a.current].Env
	for _, s := range p.Steered {
		switch {
		case strings.ContainsAny(s, "./"):
			if slices.ContainsFunc(a.facts.Writes, func(w string) bool { return w == s || path.Base(w) == path.Base(s) }) {
				a.opaque("the script writes " + s + ", which decides what " + name + " does")
			}
		case a.changed[s] || slices.Contains(env, s):
			a.opaque("the script sets " + s + ", which decides what " + name + " does")
		}
	}
}

// general judges what a program does without being told.
func (a *analyser) general(p *programs.Program, name string, g *arguments, sc *scope) {
	a.kept(p, g)
	for _, r := range p.Rules {
		if !r.Holds(g.has) {
			continue
		}
		switch r.Verb {
		case "reads":
			for _, f := range r.Args {
				a.read(f, sc)
			}
		case "writes":
			a.disturbed = true
			for _, f := range r.Args {
				a.write(f, sc)
			}
		case "rewrites":
			for _, f := range r.Args {
				a.rewrites(name, literal(f), g, sc)
			}
		case "tree":
			a.tabledTree(p, g, sc)
		case "repository":
			a.works(name, g, sc)
		case "saves":
			a.savedAs(g, sc)
		case "environment":
			a.inherits(everyVariable)
		case "opaque":
			a.disturbed = true
			a.opaque(name + " " + r.Text())
			a.worksIn(strings.Fields(name)[0], nil, sc)
		case "dynamic":
			a.dynamic(name + " " + r.Text())
		case "unresolved":
			a.unresolved(sc.wrapped(name), name+" "+r.Text())
		}
	}
}

// kept notes what a program starts and keeps for itself, also where it only prints its help.
func (a *analyser) kept(p *programs.Program, g *arguments) {
	for _, r := range p.Rules {
		switch {
		case r.Verb == "starts" && r.Holds(g.has):
			for _, s := range r.Args {
				a.facts.Starts = appendNew(a.facts.Starts, s)
			}
		case r.Verb == "caches" && r.Holds(g.has):
			for _, f := range r.Args {
				a.facts.Caches = appendNew(a.facts.Caches, f)
			}
		}
	}
}

// roles are the kinds of the operands that are there.
func roles(p *programs.Program, g *arguments) (kinds []string, ok bool) {
	for _, r := range p.Rules {
		if r.Verb == "operands" && r.Holds(g.has) {
			return r.Args, true
		}
	}
	return nil, false
}

// kindOf is the kind of one of several operands.
func kindOf(kinds []string, i int) string {
	if i < len(kinds) {
		return strings.TrimSuffix(kinds[i], "...")
	}
	last := kinds[len(kinds)-1]
	if kind, repeated := strings.CutSuffix(last, "..."); repeated {
		return kind
	}
	return "unknown"
}

// tabledOperands judges the operands. It reports whether the command that they are has
// changed the shell itself.
func (a *analyser) tabledOperands(p *programs.Program, name string, g *arguments, sc *scope) (within bool) {
	ops := a.withDefault(p, g)
	kinds, ok := roles(p, g)
	if !ok && len(ops) > 0 {
		for _, r := range p.Rules {
			if r.Verb == "opaque" && r.Holds(g.has) {
				a.opaque(name + " " + r.Text())
			}
		}
		a.opaque("the operand " + ops[0].shown() + " of " + name + " is not in the table of programs")
		a.perhaps(name, ops, sc)
		a.foreign(ops, sc)
		return false
	}
	if ok && kinds[0] == "variables" {
		if ops, sc = a.assignments(name, ops, sc); len(ops) == 0 {
			a.inherits(everyVariable) // env without a program
		}
		kinds = kinds[1:]
	}
	for i := 0; i < len(ops); i++ {
		kind := kindOf(kinds, i)
		if p.Stop && ops[i].glob && !ops[i].bound && kind != "command" {
			a.dynamic("an argument of " + name + " may be several")
		}
		switch kind {
		case "copy", "move", "link":
			a.transfer(kind, ops[i:], g, sc)
			return false
		case "exchange":
			a.exchanged(ops[i:], sc)
			return false
		case "command":
			a.startsWith(name, ops[i:], sc)
			return false
		case "passed":
			a.perhaps(name, ops[i:], sc)
			a.foreign(ops[i:], sc)
			return false
		case "sync":
			a.synchronised(ops[i:], g, sc)
			return false
		case "fed":
			a.fed(name, ops[i:], g, sc)
			return false
		case "within":
			inner := sc.wrapped(name)
			a.run(ops[i:], nil, inner)
			sc.take(inner)
			return true
		case "architecture":
			a.architecture(name, ops[i:], sc)
			return false
		case "shell":
			text, known := join(ops[i:])
			if !known {
				a.unresolved(sc.wrapped(name), name+" runs a text that is not known")
				return false
			}
			a.shellText(name, text, sc)
			return false
		case "pattern", "text":
			if !ops[i].known && ops[i].split {
				a.dynamic("an argument of " + name + " is not known")
			}
		default:
			a.setting(name, setting{name: "operand", kind: kind, value: ops[i]}, sc)
		}
	}
	return false
}

func (a *analyser) withDefault(p *programs.Program, g *arguments) []word {
	if len(g.operands) > 0 {
		return g.operands
	}
	for _, r := range p.Rules {
		if r.Verb == "default" && r.Holds(g.has) {
			return []word{literal(r.Args[0])}
		}
	}
	return nil
}

// tabledTree records the folders that a program takes with all that is in them.
func (a *analyser) tabledTree(p *programs.Program, g *arguments, sc *scope) {
	kinds, ok := roles(p, g)
	if !ok {
		return
	}
	ops := a.withDefault(p, g)
	var folders []word
	for i, w := range ops {
		kind, suffix, _ := strings.Cut(kindOf(kinds, i), ":")
		if kind == "write" && suffix != "" {
			continue // an archive
		}
		switch kind {
		case "any", "text", "pattern", "word", "mode", "url", "host", "port", "revision", "passed", "target", "program":
		case "copy", "move", "link":
			if i < len(ops)-1 || len(ops) == 1 || g.has("-t") {
				folders = append(folders, w)
			}
		default:
			folders = append(folders, w)
		}
	}
	if len(folders) == 0 {
		folders = []word{literal(".")}
	}
	a.tree(folders, sc)
}

// setting judges the value of an option, or an operand.
func (a *analyser) setting(name string, v setting, sc *scope) {
	kind, suffix, _ := strings.Cut(v.kind, ":")
	w := v.value
	switch kind {
	case "any", "module", "list":
	case "inline":
		a.unresolved(sc.wrapped(name), name+" with code in its arguments")
	case "place":
		to := sc.copy()
		a.enters(w, to)
		a.worksIn(name, nil, to)
	case "program":
		if w.known && w.text == "-" {
			a.unresolved(sc.wrapped(name), name+" reads its program from its input")
			return
		}
		a.touchWord(w, "r", sc)
		a.opaque(name + " runs the program " + w.shown())
		a.worksIn(name, nil, sc)
	case "target":
		if w.known && strings.Contains(w.text, "=") {
			a.dynamic("an argument of " + name + " decides what runs")
		}
		a.foreign([]word{w}, sc)
	case "beside":
		a.disturbed = true
		if w.known {
			w.text, w.glob = strings.TrimRight(w.text, "X")+"*", true
		}
		a.touchWord(w, "w", sc)
	case "inside":
		a.disturbed = true
		if w.known {
			w.text, w.glob = strings.TrimSuffix(w.text, "/")+"/*", true
		}
		a.touchWord(w, "w", sc)
	case "text", "word", "pattern", "mode":
		if !w.known && w.split {
			a.dynamic("an argument of " + name + " is not known")
		}
	case "read":
		a.touchWord(w, "r", sc)
		if suffix != "" && w.known && path.Ext(w.text) == "" {
			a.read(w.text+suffix, sc)
		}
	case "write":
		a.disturbed = true
		if name == "mkdir" || name == "install" {
			a.madeOnTheWay(w)
		}
		a.touchWord(w, "w", sc)
		if suffix != "" && w.known && path.Ext(w.text) == "" {
			a.write(w.text+suffix, sc)
		}
	case "rewrite":
		a.disturbed = true
		a.touchWord(w, "rw", sc)
	case "delete":
		a.disturbed = true
		a.touchWord(w, "w", sc)
		a.deleted([]word{w}, sc)
	case "replace", "restore", "pack", "unpack":
		a.packed(kind, suffix, w, sc)
	case "output":
		a.writesOrStarts(name, w, sc)
	case "variable":
		if !w.known || selects(w.text) {
			a.dynamic("an option of " + name + " changes a variable that decides what runs")
		}
	case "split":
		a.unresolved(sc.wrapped(name), name+" splits a text that is not known")
	case "base":
		a.enters(w, sc.copy())
	case "names":
		a.option("n", w, sc)
	case "folder":
		a.enters(w, sc)
	case "url":
		a.option("u", w, sc)
	case "host":
		a.url(w)
	case "port":
		if !w.known || !isNumber(w.text) {
			a.url(w)
		}
	case "remote":
		a.remotely(w, suffix, sc)
	case "data":
		a.option("d", w, sc)
	case "expanded":
		if w.known && strings.ContainsAny(w.text, "{[") {
			w = word{}
		}
		a.touchWord(w, "r", sc)
	case "format":
		a.formatted(name, w, sc)
	case "code":
		a.opaque("the text " + w.shown() + " of " + name + " is in a language of its own")
		a.embedded([]word{literal("--command=" + w.text)}, sc.wrapped(name))
	case "query":
		a.lookedUp(w)
	case "account":
		if !w.known || strings.Contains(w.text, "@") {
			a.network(false)
			a.url(w)
		}
	case "page":
		if !w.known || strings.Contains(w.text, "/") {
			a.touchWord(w, "r", sc)
		}
	case "listed":
		if strings.HasPrefix(w.text, "@") {
			a.option("n", w.from(1), sc)
			return
		}
		a.touchWord(w, "r", sc)
	case "script":
		if !w.known || quotedHome(w) {
			a.unresolved(sc.wrapped(name), name+" runs a text that is not known")
			return
		}
		a.shellText(name, w.text, sc)
	case "command":
		a.commandOption(name, v, sc)
	case "revision", "compared", "pathspec", "indexed", "repository", "source":
		a.gitWord(name, kind, w, sc)
	case "assign":
		a.environment(w, sc)
	default:
		a.opaque("the argument " + w.shown() + " of " + name + " is not in the table of programs")
	}
}

// commandOption judges an option whose value is a program, maybe with arguments.
func (a *analyser) commandOption(name string, v setting, sc *scope) {
	words, ok := splitString(v.value)
	if !ok || len(words) == 0 || !isKnown(words[0].text) {
		a.unresolved(sc.wrapped(name), "the option "+v.name+" of "+name+" names a program")
		return
	}
	a.starts(words, sc.wrapped(name))
}

// remotely judges a place that may be on another host: host:path or a file, which is read
// or written.
func (a *analyser) remotely(w word, mode string, sc *scope) {
	if w.known && strings.Contains(w.text, ":") && !strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, "./") {
		a.network(false)
		a.remote(w.text)
		a.hostOf(w.text)
		a.facts.Starts = appendNew(a.facts.Starts, "ssh")
		return
	}
	if mode == "write" {
		a.disturbed = true
		a.touchWord(w, "w", sc)
		return
	}
	a.touchWord(w, "r", sc)
}
