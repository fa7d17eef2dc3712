package shell

import (
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// search is what a command line of find says.
type search struct {
	roots []word
	// only are tests that what is found passes; nil if the expression has alternatives
	// or negations, so that no test is certain.
	only []setting
	runs []execution
	// prints is what it prints: "" nothing but the paths, with a line feed behind each.
	zero, other bool
	deletes     bool
}

// execution is a program that find starts.
type execution struct {
	command []word
	// all: it gets several paths at its end. dir: it runs in the folder of what is found.
	all, dir bool
}

// find judges find: what it hands over to the programs that it starts is somewhere below
// its roots.
func find(a *analyser, name string, args []word, sc *scope) {
	s, ok := a.search(name, args, sc)
	if !ok {
		return
	}
	if s.deletes {
		a.disturbed = true
		a.tree(s.roots, sc)
		a.operands("w", s.roots, sc)
		a.deleted(s.roots, sc)
	}
	inner := sc.wrapped(name)
	inner.input = nil
	for _, e := range s.runs {
		a.tree(s.roots, sc)
		found := a.found(s, sc)
		at := inner
		if e.dir {
			at = inner.copy()
			at.here = s.folders(a, sc)
			found = []word{below(".")}
		}
		if e.all {
			a.run(append(slices.Clone(e.command), several(found)...), nil, at.copy())
			continue
		}
		a.each(found, "{}", e.command, at)
	}
}

// each judges a command once for each of some words, which take the place of a mark.
func (a *analyser) each(found []word, mark string, command []word, sc *scope) {
	first := len(a.facts.Commands)
	for n, f := range found {
		begin := len(a.facts.Commands)
		words := slices.Clone(command)
		for i, w := range words {
			if strings.Contains(w.text, mark) {
				words[i] = w.with(mark, f)
			}
		}
		a.run(words, nil, sc.copy())
		if n > 0 && sameCommands(a.facts.Commands[first:begin], a.facts.Commands[begin:]) {
			a.facts.Commands = a.facts.Commands[:begin]
		}
	}
}

// sameCommands reports whether some commands begin with others, and notes those of them
// that are opaque.
func sameCommands(first, again []Command) bool {
	if len(again) > len(first) {
		return false
	}
	for i, c := range again {
		if c.Name != first[i].Name || !slices.Equal(c.Argv, first[i].Argv) || !slices.Equal(c.Wrappers, first[i].Wrappers) {
			return false
		}
	}
	for i, c := range again {
		if first[i].Opaque == "" {
			first[i].Opaque = c.Opaque
		}
	}
	return true
}

// several are the words of a command that gets any number of what is found.
func several(found []word) []word { return append(slices.Clone(found), found...) }

// search reads the words behind find. It records the files that they name.
func (a *analyser) search(name string, args []word, sc *scope) (s search, ok bool) {
	table, ok := programs.Find("find")
	if !ok {
		return s, false
	}
	i := 0
	for i < len(args) && args[i].known && (slices.Contains([]string{"-H", "-L", "-P", "-D"}, args[i].text) || strings.HasPrefix(args[i].text, "-O")) {
		if args[i].text == "-D" {
			i++
		}
		i++
	}
	for ; i < len(args) && !(args[i].known && beginsTest(args[i].text)); i++ {
		if !args[i].known && args[i].split {
			a.dynamic("an argument of find is not known")
		}
		s.roots = append(s.roots, args[i])
	}
	if len(s.roots) == 0 {
		s.roots = []word{literal(".")}
	}
	a.operands("r", s.roots, sc)
	certain := true
	for i < len(args) {
		w := args[i]
		i++
		o, known := table.Option(w.text)
		switch {
		case !w.known && !w.number:
			a.dynamic("an argument of find is not known")
		case w.text == "!" || w.text == "," || w.text == "-not" || w.text == "-o" || w.text == "-or":
			certain = false
		case w.text == "(" || w.text == ")" || !strings.HasPrefix(w.text, "-"):
		case !known:
			a.opaque("the option " + w.text + " of find is not in the table of programs")
			a.perhaps(name, args[i:], sc)
		case o.Value == "command":
			var e execution
			e, i = a.execution(w.text, args, i)
			s.runs = append(s.runs, e)
		case o.Value == "":
			s.acts(w.text)
		case i < len(args):
			v := setting{name: w.text, kind: o.Value, value: args[i]}
			i++
			if v.value.glob && slices.ContainsFunc(table.Options, func(o programs.Option) bool { return matches(v.value.text, o.Names[0]) }) {
				a.dynamic("a pattern in an argument of find may stand for an option")
			}
			a.setting(name, v, sc)
			s.only = append(s.only, v)
			s.other = s.other || v.name == "-printf"
			if v.name == "-fprintf" {
				i++
			}
		}
	}
	if !certain {
		s.only = nil
	}
	return s, true
}

// beginsTest reports whether a word ends the roots of find.
func beginsTest(text string) bool {
	return len(text) > 1 && text[0] == '-' || text == "(" || text == ")" || text == "!" || text == ","
}

// matches reports whether a pattern of the shell may stand for a name.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// acts notes a word of find that takes no value.
func (s *search) acts(text string) {
	switch text {
	case "-delete":
		s.deletes = true
	case "-print0":
		s.zero = true
	case "-ls", "-help", "-version":
		s.other = true
	}
}

// execution reads the command behind -exec, up to a semicolon, or a plus sign behind {}.
func (a *analyser) execution(option string, args []word, at int) (e execution, next int) {
	e.dir = strings.HasSuffix(option, "dir")
	for ; at < len(args); at++ {
		w := args[at]
		switch {
		case w.known && w.text == ";":
			return e, at + 1
		case w.known && w.text == "+" && len(e.command) > 0 && e.command[len(e.command)-1].text == "{}":
			e.command, e.all = e.command[:len(e.command)-1], true
			return e, at + 1
		case !w.known && w.head == "" && !w.number && (at+1 == len(args) || !args[at+1].known || beginsTest(args[at+1].text)):
			// It may be the semicolon, so that what follows are options of find.
			a.dynamic("an argument of find is not known")
		}
		e.command = append(e.command, w)
	}
	return e, at
}

// found are the paths that a search may find.
func (a *analyser) found(s search, sc *scope) (found []word) {
	for _, r := range s.roots {
		if !r.known {
			found = append(found, word{split: true})
			continue
		}
		top := r.text
		if r.glob {
			top = path.Dir(top[:strings.IndexAny(top+"*", "*?[")] + "x")
		}
		found = append(found, below(top))
		if !s.passes(a, r, sc) {
			continue
		}
		r.glob, r.bound = true, true // the name of no program
		found = append(found, r)
	}
	return found
}

// passes reports whether a root itself may be among what is found.
func (s *search) passes(a *analyser, root word, sc *scope) bool {
	folder := root.text == "." || root.text == ".." || strings.HasSuffix(root.text, "/")
	if !folder && !root.glob {
		folder, _ = a.looksFolder(root, sc)
	}
	base := path.Base(root.text)
	for _, t := range s.only {
		if !t.value.known || t.value.glob {
			continue
		}
		v := t.value.text
		switch t.name {
		case "-mindepth":
			if isNumber(v) && strings.Trim(v, "0") != "" {
				return false
			}
		case "-type":
			if folder && !strings.Contains(v, "d") {
				return false
			}
		case "-name":
			if !root.glob && !matches(v, base) {
				return false
			}
		case "-iname":
			if !root.glob && !matches(strings.ToLower(v), strings.ToLower(base)) {
				return false
			}
		}
	}
	return true
}

// folders are those that -execdir runs a program in.
func (s *search) folders(a *analyser, sc *scope) folders {
	to := folders{}
	for _, r := range s.roots {
		if !r.known || r.glob {
			to.unknown = true
			continue
		}
		to = to.union(a.joins(sc.here, path.Dir(r.text))).union(a.joins(sc.here, r.text)).union(a.joins(sc.here, below(r.text).text))
	}
	a.entered(to)
	return to
}
