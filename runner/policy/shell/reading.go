package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// correctionLimit bounds how often one script is parsed again.
const correctionLimit = 32

// parse reads a script as bash does. The parser reads some text in another way than
// bash, and each of these differences would hide a command:
//
//   - it joins a comment that ends in a backslash with the next line, where bash
//     ends the comment;
//   - it takes all that follows let for arithmetic, where bash ends the command at
//     the first operator;
//   - it takes -- behind time for a program, where bash takes it for the end of the
//     options;
//   - it takes the first word behind coproc for the program, also where that is an
//     assignment or the number of a redirection.
//
// The first such place is rewritten to text that both read alike, and the script is
// parsed again: what follows it may have been read in another way because of it.
func (a *analyser) parse(text string) (*syntax.File, error) {
	for range correctionLimit {
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		if file == nil {
			return nil, err
		}
		c, found := misread(text, file)
		if !found {
			return file, err
		}
		text = text[:c.at] + c.with + text[c.at+c.length:]
	}
	a.dynamic("the script has too many places that the parser reads in another way than bash")
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// correction replaces length bytes of a script.
type correction struct {
	at, length int
	with       string
}

// misread finds the first place of a script that bash reads in another way.
func misread(text string, file *syntax.File) (first correction, found bool) {
	note := func(c correction) {
		if c.at >= 0 && c.at+c.length <= len(text) && (!found || c.at < first.at) {
			first, found = c, true
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			if i := strings.Index(n.Text, "\\\n"); i >= 0 {
				// With a dot behind it the backslash ends no line.
				note(correction{at: int(n.Hash.Offset()) + 1 + i + 1, with: "."})
			}
		case *syntax.LetClause:
			// Quoted, it is an ordinary command.
			note(correction{at: int(n.Let.Offset()), with: `\`})
		case *syntax.TimeClause:
			if call, ok := simple(n.Stmt); ok && len(call.Args) > 0 && call.Args[0].Lit() == "--" {
				note(correction{at: int(call.Args[0].Pos().Offset()), length: 2, with: "  "})
			}
		case *syntax.CoprocClause:
			if _, ok := simple(n.Stmt); ok || n.Stmt == nil || n.Stmt.Cmd == nil {
				note(correction{at: int(n.Coproc.Offset()), length: len("coproc"), with: "!     "})
			}
		}
		return true
	})
	return first, found
}

// simple returns the simple command of a statement.
func simple(s *syntax.Stmt) (*syntax.CallExpr, bool) {
	if s == nil {
		return nil, false
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	return call, ok
}

// differsInPOSIX reports whether a shell without bash's own syntax may read a text
// differently: as words, where bash expands braces or quotes.
func differsInPOSIX(text string) bool {
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), ""); err != nil {
		return true
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return true
	}
	differs := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.SglQuoted:
			differs = differs || n.Dollar
		case *syntax.DblQuoted:
			differs = differs || n.Dollar
		case *syntax.Lit:
			differs = differs || strings.Contains(n.Value, "{") && strings.ContainsAny(n.Value, ",.")
		case *syntax.CoprocClause, *syntax.ArithmCmd, *syntax.TestClause, *syntax.ProcSubst, *syntax.LetClause, *syntax.ExtGlob, *syntax.TimeClause: // time is a program
			differs = true
		}
		return !differs
	})
	return differs
}
