package shell

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// Spelling splits the words behind a program's name into its global options with their
// values, and the rest: the subcommand and what follows it. Of subcommands that have
// subcommands, the options are global, too. known is false if the table does not describe
// the program or one of these options; global and rest are then what they most likely are.
func Spelling(argv []string) (global, rest []string, known bool) {
	if len(argv) == 0 {
		return nil, nil, false
	}
	name, left := argv[0], argv[1:]
	p, known := programs.Find(name)
	for known && p.Subcommands && len(left) > 0 {
		g := argumentsOf(p, literalWords(left))
		known = g.unknown == ""
		at := len(left) - len(g.operands)
		global, left = append(global, left[:at]...), left[at:]
		if len(left) == 0 {
			break
		}
		next, found := programs.Find(name + " " + left[0])
		rest = append(rest, left[0])
		name, p, left = name+" "+left[0], next, left[1:]
		if !found {
			break
		}
	}
	return global, append(rest, left...), known
}

// Canonical returns the same command in one spelling. Options are separated, have the last
// of their names in the table, which is the long one, and stand sorted in front of the
// operands. The value of a long option follows an equals sign, that of a short one is the
// next word. A program or a subcommand with several names has the first of them. What the
// table does not describe stays as it is.
func Canonical(argv []string) []string {
	if len(argv) == 0 {
		return argv
	}
	name, left := argv[0], argv[1:]
	p, ok := programs.Find(name)
	if !ok {
		return argv
	}
	var out []string
	for ok {
		out = append(out, p.Same[strings.LastIndexByte(p.Same, ' ')+1:])
		g := &arguments{given: map[string]bool{}, spells: true}
		g.split(p, literalWords(left))
		out = append(out, spelled(p, g)...)
		left = make([]string, len(g.operands))
		for i, w := range g.operands {
			left[i] = w.text
		}
		if !p.Subcommands || len(left) == 0 {
			break
		}
		name += " " + left[0]
		if p, ok = programs.Find(name); ok {
			left = left[1:]
		}
	}
	return append(out, left...)
}

// spelledOption is an option in the one spelling that Canonical gives it.
type spelledOption struct {
	name, value string
	// has is set if it has a value, attached if that cannot be a word of its own.
	has, attached bool
}

// spelled are the words of all options of a command, and what separates them from operands
// that look like some.
func spelled(p *programs.Program, g *arguments) []string {
	slices.SortStableFunc(g.spelled, func(a, b spelledOption) int { return strings.Compare(a.name, b.name) })
	var out []string
	for _, o := range g.spelled {
		switch {
		case !o.has:
			out = append(out, o.name)
		case strings.HasPrefix(o.name, "--"):
			out = append(out, o.name+"="+o.value)
		case o.attached:
			out = append(out, o.name+o.value)
		default:
			out = append(out, o.name, o.value)
		}
	}
	operands := g.operands
	if p.Stop { // what is behind the first one is not taken for options
		operands = operands[:min(1, len(operands))]
	}
	if !p.Literal && slices.ContainsFunc(operands, func(w word) bool { return len(w.text) > 1 && w.text[0] == '-' }) {
		out = append(out, "--")
	}
	return out
}

func literalWords(texts []string) []word {
	words := make([]word, len(texts))
	for i, t := range texts {
		words[i] = literal(t)
	}
	return words
}
