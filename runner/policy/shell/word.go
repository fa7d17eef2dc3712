package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is what is known about a word of the script after quote removal.
type word struct {
	text string
	// known is false when an expansion decides the text; head is then what surely is in
	// front of it.
	known bool
	head  string
	// glob: the shell expands the text to names of files.
	glob bool
	// split: the text may become several words, or none.
	split bool
	// proc: the word is a process substitution.
	proc bool
	// bound: a part of it is the value of a loop's variable.
	bound bool
	// number: only the values of arithmetic expansions are unknown.
	number bool
	// text of an expansion that is not a number is in it.
	mixed bool
}

// hide notes that the text is not known behind what has been written of it.
func (w *word) hide(written *strings.Builder) {
	if w.known {
		w.known, w.head = false, written.String()
	}
	w.mixed = true
}

// count notes that a number follows what has been written.
func (w *word) count(written *strings.Builder) {
	mixed := w.mixed
	w.hide(written)
	written.WriteString(someName)
	w.number, w.mixed = true, mixed
}

// from is the word without its first bytes, which are known.
func (w word) from(n int) word {
	w.text = w.text[min(n, len(w.text)):]
	w.head = w.head[min(n, len(w.head)):]
	return w
}

func (w word) shown() string {
	if !w.known || strings.Contains(w.text, someName) {
		return Unknown
	}
	return w.text
}

// value returns the value of a word, as one text.
func (a *analyser) value(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	v := word{known: true}
	var b strings.Builder
	for i, part := range w.Parts {
		a.part(&v, &b, part, i == 0, false)
	}
	v.text = b.String()
	v.number = v.number && !v.mixed
	if v.text == "[" {
		// The test command, and no pattern without its other end.
		v.glob = false
	}
	return v
}

func (a *analyser) part(v *word, b *strings.Builder, part syntax.WordPart, first, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		text, glob := unescape(p.Value)
		if first && strings.HasPrefix(p.Value, "~") && (strings.HasPrefix(text, "~+") || strings.HasPrefix(text, "~-")) {
			v.hide(b)
		}
		if first && strings.HasPrefix(p.Value, `\~`) {
			b.WriteString("./")
		}
		v.glob = v.glob || glob
		b.WriteString(text)
	case *syntax.SglQuoted:
		text, ok := p.Value, true
		if p.Dollar {
			text, ok = ansiC(p.Value)
		}
		if !ok {
			v.hide(b)
		}
		if first && strings.HasPrefix(text, "~") {
			b.WriteString("./")
		}
		b.WriteString(text)
	case *syntax.DblQuoted:
		if p.Dollar {
			v.hide(b)
		}
		for j, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				text := unescapeDouble(lit.Value)
				if first && j == 0 && strings.HasPrefix(text, "~") {
					b.WriteString("./")
				}
				b.WriteString(text)
				continue
			}
			split := v.split
			a.part(v, b, q, first && j == 0, true)
			v.split = split
		}
	case *syntax.ParamExp:
		if first && isHome(p) {
			b.WriteString("~")
			return
		}
		if isCount(p) {
			v.count(b)
			return
		}
		if a.substituted(v, b, p, first, quoted) {
			return
		}
		v.hide(b)
		v.split = true
	case *syntax.ArithmExp:
		v.count(b)
	case *syntax.ProcSubst:
		v.hide(b)
		v.proc = true
	case *syntax.CmdSubst:
		text, ok := a.hereText(p)
		if !ok || !quoted {
			v.hide(b)
			v.split = true
			return
		}
		if first && strings.HasPrefix(text, "~") {
			b.WriteString("./")
		}
		b.WriteString(text)
	default:
		v.hide(b)
		v.split = true
	}
}

// hereText is the text of "$(cat <<'END' ... )", by which a text of several lines becomes
// one argument.
func (a *analyser) hereText(c *syntax.CmdSubst) (text string, ok bool) {
	if len(c.Stmts) != 1 || c.TempFile || c.ReplyVar || a.funcs["cat"] != nil {
		return "", false
	}
	s := c.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) != 1 || len(call.Assigns) > 0 || len(call.Args) != 1 || call.Args[0].Lit() != "cat" {
		return "", false
	}
	r := s.Redirs[0]
	if r.Op != syntax.Hdoc || r.N != nil || r.Hdoc == nil || !isQuoted(r.Word) {
		return "", false
	}
	for _, p := range r.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			return "", false
		}
		text += lit.Value
	}
	return strings.TrimRight(text, "\n"), true
}

// isQuoted reports whether a part of a word is in quotes.
func isQuoted(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			return strings.Contains(p.Value, `\`)
		}
		return false
	})
}

func isHome(p *syntax.ParamExp) bool { return isPlain(p) && p.Param.Value == "HOME" }

// isPlain reports whether an expansion is the unmodified value of a variable.
func isPlain(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil && len(p.Modifiers) == 0
}

// isCount reports whether an expansion is always a number: $?, $#, $$, $! and ${#x}.
func isCount(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Exp != nil || p.Excl || p.Repl != nil || p.Slice != nil {
		return false
	}
	return p.Length || p.Short && slices.Contains([]string{"?", "#", "$", "!"}, p.Param.Value)
}

func procSubst(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// values returns the words that brace expansion makes of a word.
func (a *analyser) values(w *syntax.Word) []word {
	braces := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
		}
	}
	if braces == 0 {
		return []word{a.value(w)}
	}
	if braces > braceLimit {
		return []word{{split: true}}
	}
	// SplitBraces rewrites the word in place, and the walker panics on what it
	// leaves behind: work on a copy.
	c := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if !syntax.SplitBraces(c) {
		return []word{a.value(w)}
	}
	var out []word
	for x, err := range expand.BracesSeq(nil, c) {
		if err != nil || len(out) >= 256 {
			return []word{{split: true}}
		}
		if v := a.value(x); v.text != "" || !v.known || len(x.Parts) > 1 {
			out = append(out, v)
		}
	}
	return out
}

// visit walks the commands inside a word.
func (a *analyser) visit(w *syntax.Word, sc *scope) {
	if w == nil {
		return
	}
	for _, p := range w.Parts {
		a.visitPart(p, sc)
	}
}

func (a *analyser) visitPart(part syntax.WordPart, sc *scope) {
	switch p := part.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			a.visitPart(q, sc)
		}
	case *syntax.CmdSubst:
		a.understood = true
		inner := sc.copy()
		a.maybe(func() { a.stmts(p.Stmts, inner) })
		if p.TempFile || p.ReplyVar { // it runs in the shell itself
			sc.here = sc.here.union(inner.here)
		}
		if p.ReplyVar {
			a.assigned(literal("REPLY"), false, sc)
		}
	case *syntax.ProcSubst:
		a.maybe(func() { a.stmts(p.Stmts, sc.copy()) })
	case *syntax.ArithmExp:
		a.arithm(p.X, sc)
	case *syntax.ParamExp:
		a.visitParam(p, sc)
	case *syntax.ExtGlob:
		if strings.ContainsAny(p.Pattern.Value, "$`") {
			a.dynamic("a pattern with an expansion")
		}
	default:
		a.dynamic("a word that is not understood")
	}
}

func (a *analyser) visitParam(p *syntax.ParamExp, sc *scope) {
	if p.Excl && p.Names == 0 {
		a.dynamic("an indirect expansion")
	}
	if p.NestedParam != nil || p.Flags != nil || len(p.Modifiers) > 0 {
		a.dynamic("an expansion that is not understood")
	}
	if p.Param != nil && plainName().MatchString(p.Param.Value) && !(p.Excl && p.Names != 0) {
		a.uses(p.Param.Value, sc)
	}
	if p.Index != nil {
		a.arithmIndex(p.Index, sc)
	}
	if p.Slice != nil {
		a.arithm(p.Slice.Offset, sc)
		a.arithm(p.Slice.Length, sc)
	}
	if p.Repl != nil {
		a.visit(p.Repl.Orig, sc)
		a.visit(p.Repl.With, sc)
	}
	if p.Exp != nil {
		if p.Exp.Op == syntax.OtherParamOps {
			a.dynamic("an expansion that evaluates its value")
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			name := word{}
			if p.Param != nil && p.Index == nil {
				name = literal(p.Param.Value)
			}
			// Where it has a value already, that stays.
			a.assigned(name, false, sc.copy())
		}
		a.visit(p.Exp.Word, sc)
	}
}

// paths joins a path as written to the folders that the shell may be in.
func (a *analyser) paths(p string, sc *scope) []string {
	p, ok := shorten(p)
	if !ok {
		a.dynamic("a path that is not known")
		return []string{Unknown}
	}
	if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") {
		return []string{p}
	}
	var out []string
	for _, dir := range sc.here.at {
		out = appendNew(out, a.below(dir, p))
	}
	if sc.here.unknown {
		a.dynamic("the current folder is not known")
		out = append(out, Unknown)
	}
	return out
}

// below joins a path to a folder.
func (a *analyser) below(dir, p string) string {
	if dir == "" {
		return p
	}
	clean, ok := joined(dir, p)
	if !ok {
		a.dynamic("a path that is not known")
		return Unknown
	}
	if strings.Contains("/"+p+"/", "/../") {
		if a.facts.joined == nil {
			a.facts.joined = map[string]string{}
		}
		a.facts.joined[clean] = dir + "/" + p
	}
	return clean
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (a *analyser) read(p string, sc *scope) { a.facts.Reads = a.touch(a.facts.Reads, p, sc) }

func (a *analyser) write(p string, sc *scope) { a.facts.Writes = a.touch(a.facts.Writes, p, sc) }

func (a *analyser) touch(list []string, p string, sc *scope) []string {
	if p == "" || p == "-" || p == "/dev/null" {
		return list
	}
	for _, full := range a.paths(p, sc) {
		list = appendNew(list, full)
	}
	return list
}

// unknownPath records that some path is touched.
func (a *analyser) unknownPath(write bool) {
	a.dynamic("a path that is not known")
	if write {
		a.facts.Writes = appendNew(a.facts.Writes, Unknown)
	} else {
		a.facts.Reads = appendNew(a.facts.Reads, Unknown)
	}
}

// network notes that a connection can be opened, maybe to a host that is not named.
func (a *analyser) network(anywhere bool) {
	a.facts.Network = true
	a.facts.Anywhere = a.facts.Anywhere || anywhere
}

func (a *analyser) host(h string) {
	if h != "" {
		a.named++
		a.facts.Hosts = appendNew(a.facts.Hosts, strings.ToLower(h))
	}
}
