package shell

import (
	"slices"
	"strings"
)

func awk(a *analyser, name string, args []word, sc *scope) {
	i := 0
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-") && args[i].text != "--"; i++ {
		switch t := args[i].text; {
		case t == "--version" || t == "--help" || t == "-W" && i+1 < len(args) && args[i+1].text == "version":
			return
		case t == "-F" || t == "-v" || t == "--assign" || t == "--field-separator":
			i++
			if i < len(args) && !args[i].known && args[i].split {
				a.dynamic("an argument of " + name + " is not known")
			}
		case strings.HasPrefix(t, "-F") || strings.HasPrefix(t, "-v"):
		default:
			a.unresolved(sc.wrapped(name), "an option of awk that may load a program")
			return
		}
	}
	if i < len(args) && args[i].known && args[i].text == "--" {
		i++
	}
	if i >= len(args) {
		return
	}
	p := awkProgram{bad: args[i].shown() == Unknown}
	if !p.bad {
		p.parse(args[i].text)
	}
	if p.bad {
		a.unresolved(sc.wrapped(name), "an awk program that may run or write something")
	}
	if p.bad || strings.Contains(args[i].text, "ENVIRON") || strings.Contains(args[i].text, "SYMTAB") {
		a.inherits(everyVariable)
	}
	for _, f := range p.reads {
		a.read(f, sc)
	}
	for _, f := range p.writes {
		a.disturbed = true
		a.write(f, sc)
	}
	for _, w := range args[i+1:] {
		if w.known && strings.Contains(w.text, "=") && !strings.Contains(w.text, "/") {
			continue
		}
		a.touchWord(w, "r", sc)
	}
}

// awkProgram reads a program of awk: what it opens besides its operands.
type awkProgram struct {
	reads, writes []string
	// bad: it may start a program, or is not understood.
	bad bool
	// last is the token before: a byte that stands for a name, a number or a text, or
	// punctuation.
	last byte
	// prints is set in a print statement, with how many parentheses are open in it.
	prints bool
	depth  int
}

// Kinds of tokens that are not punctuation.
const (
	awkName = 'a'
	awkText = '"'
)

// awkStarts are names with which a program does more than read its input and print.
var awkStarts = []string{"system", "extension", "ARGV", "ARGC", "load", "PROCINFO"}

func (p *awkProgram) parse(text string) {
	for i := 0; i < len(text) && !p.bad; {
		c := text[i]
		switch {
		case c == ' ' || c == '\t':
			i++
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			i += 2
		case c == '"':
			_, i = p.quoted(text, i, '"')
			p.last = awkText
		case c == '/' && !p.operand():
			if p.last == ')' { // a condition in front of a pattern, or a division
				p.bad = true
			}
			_, i = p.quoted(text, i, '/')
			p.last = awkText
		case isAwkName(c):
			end := i
			for end < len(text) && isAwkName(text[end]) {
				end++
			}
			i = p.name(text, i, end)
		default:
			i = p.punctuation(text, i)
		}
	}
}

func isAwkName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.'
}

// operand reports whether a slash divides what is in front of it.
func (p *awkProgram) operand() bool {
	return p.last == awkName || p.last == awkText || p.last == ']' || p.last == '$' || p.last == '+' || p.last == '-'
}

// quoted reads a string or a pattern.
func (p *awkProgram) quoted(text string, at int, end byte) (content string, next int) {
	open := false
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '\n':
			p.bad = true
			return "", len(text)
		case end == '/' && c == '[':
			open = true
		case c == ']':
			open = false
		case c == end && open: // awks differ in whether this ends the pattern
			p.bad = true
			return "", len(text)
		case c == end:
			return text[at+1 : i], i + 1
		}
	}
	p.bad = true
	return "", len(text)
}

func (p *awkProgram) name(text string, at, end int) (next int) {
	word := text[at:end]
	p.last = awkName
	switch {
	case slices.Contains(awkStarts, word):
		p.bad = true
	case word == "print" || word == "printf":
		p.prints, p.depth, p.last = true, 0, 0
	case word == "getline":
		return p.getline(text, end)
	case slices.Contains([]string{"return", "in", "else", "do", "delete", "case", "exit"}, word):
		p.last = 0
	}
	return end
}

// getline reads from a file if < follows, maybe behind a variable.
func (p *awkProgram) getline(text string, at int) (next int) {
	i := at
	for i < len(text) && (isAwkName(text[i]) || strings.IndexByte(" \t$[]", text[i]) >= 0) {
		i++
	}
	if i == len(text) || text[i] != '<' {
		return at
	}
	p.last = awkText
	return p.file(text, i+1, &p.reads)
}

// file reads the name of a file behind a redirection; one that is computed is not known.
func (p *awkProgram) file(text string, at int, list *[]string) (next int) {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	if at == len(text) || text[at] != '"' {
		p.bad = true
		return at
	}
	name, next := p.quoted(text, at, '"')
	rest := strings.TrimLeft(text[next:], " \t")
	if strings.ContainsAny(name, `\`) || strings.HasPrefix(name, "/inet") || name == "" || rest != "" && strings.IndexByte(";}\n)", rest[0]) < 0 {
		p.bad = true
	}
	if name != "-" && !strings.HasPrefix(name, "/dev/std") {
		*list = append(*list, name)
	}
	return next
}

func (p *awkProgram) punctuation(text string, at int) (next int) {
	c, two := text[at], ""
	if at+1 < len(text) {
		two = text[at : at+2]
	}
	switch {
	case two == "||" || two == "&&" || two == "==" || two == "!=" || two == "<=" || two == ">=" && !p.prints:
		p.last = 0
		return at + 2
	case c == '|' || c == '@' || c == '`':
		p.bad = true
	case c == '>' && p.prints && p.depth <= 0:
		at++
		if two == ">>" {
			at++
		}
		p.last = awkText
		return p.file(text, at, &p.writes)
	case two == "++" || two == "--":
		// Where it stands decides what a slash behind it is.
		p.last = c
		return at + 2
	case c == '(' || c == '[':
		p.depth++
	case c == ')' || c == ']':
		p.depth--
	case c == ';' || c == '}' || c == '{' || c == '\n' && p.last != ',' && p.last != 0:
		p.prints = false
	}
	p.last = c
	if c == '+' || c == '-' || c == '$' {
		p.last = 0
	}
	return at + 1
}
