package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// someName takes the place of a part of a path that only the run can tell, and that leads
// nowhere but below the folder in front of it. In facts, the path ends there with a
// question mark: src/? is somewhere below src.
const someName = "\x01"

// below is a path somewhere below a folder.
func below(dir string) word {
	return word{text: strings.TrimSuffix(dir, "/") + "/" + someName, known: true, glob: true, bound: true}
}

// with puts another word in the place of a mark.
func (w word) with(mark string, by word) word {
	if w.known && w.text == mark {
		return by
	}
	if !w.known || !by.known {
		return word{split: by.split, head: w.head[:max(strings.Index(w.head, mark), 0)]}
	}
	w.text = strings.ReplaceAll(w.text, mark, by.text)
	w.glob, w.bound = true, true
	return w
}

// shorten ends a path at the first element that only the run can tell. It is false if
// the rest of the path may lead elsewhere.
func shorten(p string) (string, bool) {
	if !strings.Contains(p, someName) {
		return p, true
	}
	front, rest, _ := strings.Cut(p, someName)
	if strings.Contains("/"+rest+"/", "/../") {
		return Unknown, false
	}
	if front = front[:strings.LastIndexByte(front, '/')+1]; front == "" {
		front = "./"
	}
	return front + "?", true
}

// output are the texts that a command prints, one a line.
type output struct {
	words []word
	// zero: a NUL is behind each, not a line feed.
	zero bool
	// roots are the folders that they are below.
	roots []word
}

// source is what a command reads from a pipe: what another one prints.
type source struct {
	stmt *syntax.Stmt
	in   *source
	sc   *scope
}

// probesLimit bounds how deep commands are examined for what they print.
const probesLimit = 6

// output determines what a command reads; nil if that is not known. It records no facts:
// the commands are judged on their own.
func (a *analyser) output(from *source) *output {
	if from == nil || a.probes >= probesLimit {
		return nil
	}
	facts, disturbed, current := a.facts, a.disturbed, a.current
	a.facts, a.current = &Facts{Commands: []Command{{}}}, 0
	a.probes++
	out := a.prints(from.stmt, from.in, from.sc.copy())
	if a.facts.Dynamic || a.facts.Opaque {
		out = nil
	}
	a.probes--
	a.facts, a.disturbed, a.current = facts, disturbed, current
	return out
}

func (a *analyser) prints(s *syntax.Stmt, in *source, sc *scope) *output {
	if s == nil || s.Negated || s.Background || s.Coprocess || s.Disown || !silenced(s.Redirs) {
		return nil
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe {
		return a.output(&source{b.Y, &source{b.X, in, sc}, sc})
	}
	call, ok := simple(s)
	if !ok || len(call.Assigns) > 0 {
		return nil
	}
	args := a.words(call.Args, sc)
	if len(args) > 1 && args[0].known && args[0].text == "sudo" {
		args = args[1:]
	}
	if len(args) == 0 || !args[0].known || args[0].glob || a.funcs[args[0].text] != nil {
		return nil
	}
	switch name := path.Base(args[0].text); name {
	case "find":
		return a.finds(args[1:], sc)
	case "grep", "egrep", "fgrep", "sort", "head", "tail", "uniq", "cat", "tac":
		if out := a.output(in); out != nil && passesOn(name, args[1:], out.zero) {
			return out
		}
	}
	return nil
}

// silenced reports whether redirections do nothing but hide messages.
func silenced(list []*syntax.Redirect) bool {
	for _, r := range list {
		if r.Op != syntax.RdrOut || r.N == nil || r.N.Value != "2" || r.Word.Lit() != "/dev/null" {
			return false
		}
	}
	return true
}

// finds is what find prints.
func (a *analyser) finds(args []word, sc *scope) *output {
	s, ok := a.search("find", args, sc)
	if !ok || s.other || len(s.runs) > 0 {
		return nil
	}
	return &output{words: a.found(s, sc), zero: s.zero, roots: s.roots}
}

// passesOn reports whether a program prints nothing but lines that it has read.
func passesOn(name string, args []word, zero bool) bool {
	letters, values, operands := "", "", 0
	switch name {
	case "grep", "egrep", "fgrep":
		letters, values, operands = "ivEFwxPz", "em", 1
	case "sort":
		letters, values = "bdfgihnRrVsuz", "kt"
	case "head", "tail":
		letters, values = "qz0123456789", "n"
	case "uniq":
		letters, values = "duiz", "fsw"
	case "cat", "tac":
	default:
		return false
	}
	divided, given := false, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known && (w.split || w.head == "") || w.glob:
			return false
		case !w.known || len(w.text) < 2 || w.text[0] != '-':
			operands--
		default:
			end := strings.IndexAny(w.text[1:], values) + 1
			flags := w.text[1:]
			if values != "" && end > 0 {
				flags = w.text[1:end]
				given = given || w.text[end] == 'e'
				if end+1 == len(w.text) {
					i++
				}
			}
			if strings.Trim(flags, letters) != "" {
				return false
			}
			divided = divided || strings.Contains(flags, "z")
		}
	}
	if given {
		operands-- // the pattern was an option
	}
	return operands >= 0 && divided == zero
}

// joined joins a path to a folder, which may be somewhere below another one. It is false
// if the path may lead out of that.
func joined(dir, p string) (string, bool) {
	if top, rest, ok := strings.Cut(dir+"/", "/?/"); ok {
		return top + "/?", !strings.Contains("/"+rest+p+"/", "/../")
	}
	if clean := path.Join(dir, p); clean != Unknown {
		return clean, true
	}
	return "./?", true
}

// consumed notes that names in an output are used. Unless it is whole, a name is split
// at spaces, and may lose quotes.
func (a *analyser) consumed(out *output, whole bool, sc *scope) {
	a.tree(out.roots, sc)
	if whole {
		return
	}
	for _, w := range out.words {
		a.facts.Resplit = a.touch(a.facts.Resplit, w.text, sc)
	}
}

// expand returns the words that the shell makes of a word: also those that a command prints
// which stands in it.
func (a *analyser) expand(w *syntax.Word, sc *scope) []word {
	if len(w.Parts) != 1 {
		return a.values(w)
	}
	if c, ok := w.Parts[0].(*syntax.CmdSubst); ok && len(c.Stmts) == 1 && !c.TempFile && !c.ReplyVar {
		if out := a.output(&source{c.Stmts[0], nil, sc}); out != nil {
			a.consumed(out, false, sc)
			return several(out.words)
		}
	}
	return a.values(w)
}

// unpackers make files whose names are not in the script.
var unpackers = []string{"tar", "bsdtar", "gtar", "unzip", "cpio", "pax", "git", "patch", "rsync", "7z", "ar"}

// misled checks whether a pattern, or a name that is split, may stand for a file that the
// script itself makes, so that it is another argument than it seems.
func (a *analyser) misled() {
	for _, w := range a.facts.Writes {
		if a.leading && strings.Contains("/"+w, "/-") {
			a.dynamic("a pattern may stand for an option: the script makes a file of such a name")
		}
		if len(a.facts.Resplit) > 0 && strings.ContainsAny(w, " \t\n\\\"'") {
			a.dynamic("a name that is split is one that the script makes")
		}
	}
	unpacks := slices.ContainsFunc(a.facts.Commands, func(c Command) bool { return slices.Contains(unpackers, c.Name) })
	if (a.leading || len(a.facts.Resplit) > 0) && unpacks && len(a.facts.Writes) > 0 {
		a.dynamic("a pattern may stand for a file that the script unpacks")
	}
}
