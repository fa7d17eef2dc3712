package shell

import (
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/policy/shell/programs"
)

// arguments are those of a command, split into options and operands.
type arguments struct {
	// given are the options that are there, by all their names.
	given map[string]bool
	// options are those that are there, each by the last of its names.
	options []string
	// values are those of options, in their order.
	values   []setting
	operands []word
	// all are all words, as they stand.
	all []word
	// unknown is the first option that the description does not name.
	unknown string
	// open is set if a word may be an option, and it is not known which.
	open bool
	// base is the folder that the operands are relative to, scattered that one of them is
	// not.
	base      word
	scattered bool
	// inserted are the words that an option has put in the place of its value.
	inserted []word
	depth    int
	// response is set if @ is in front of the name of a file with more arguments.
	response bool
	// more is set where there is such a file.
	more bool
	// spells is set where the options are wanted in one spelling: those of spelled.
	spells  bool
	spelled []spelledOption
}

// setting is the value of an option.
type setting struct {
	name, kind string
	value      word
}

// has reports whether an option is there. The pseudo options nothing and one are there if
// there is no operand, or one; scattered if an operand is in front of the folder of others.
func (g *arguments) has(name string) bool {
	switch name {
	case "nothing":
		return len(g.operands) == 0
	case "one":
		return len(g.operands) == 1
	case "scattered":
		return g.scattered
	}
	return g.given[name]
}

// argumentsOf splits the words behind a program's name as getopt does.
func argumentsOf(p *programs.Program, args []word) *arguments {
	g := &arguments{given: map[string]bool{}}
	g.split(p, args)
	return g
}

func (g *arguments) split(p *programs.Program, args []word) {
	g.all = args
	if p.Literal {
		g.operands = args
		return
	}
	g.response = p.Response
	args = g.unbundle(p, args)
	for i := 0; i < len(args); i++ {
		w := args[i]
		head := w.text
		if !w.known {
			head = w.head
		}
		switch {
		case w.known && w.text == "--":
			g.operand(args[i+1:]...)
			return
		case !w.known && !w.number && head == "", w.glob && head != "" && strings.IndexByte("*?[", head[0]) >= 0 && p.Stop:
			g.open = true
			fallthrough
		case len(head) < 2 && w.known || head == "" || head[0] != '-' && head[0] != '+' || head[0] == '+' && !p.Plus():
			g.operand(w)
			if p.Stop {
				g.operand(args[i+1:]...)
				return
			}
		default:
			i += g.option(p, w, head, args[i+1:])
			if words := g.inserted; words != nil && g.depth < depthLimit {
				g.inserted = nil
				g.depth++
				g.split(p, slices.Concat(words, args[i+1:]))
				return
			}
		}
	}
}

// operand adds words that are not options.
func (g *arguments) operand(words ...word) {
	for _, w := range words {
		if g.response && strings.HasPrefix(w.text+w.head, "@") {
			g.more = true
		}
		if g.base.text != "" && w.known && !strings.HasPrefix(w.text, "/") {
			w.text = inFolder(g.base.text, w.text)
		}
		g.operands = append(g.operands, w)
	}
}

// inFolder is a path below a folder. Dots stay where they may follow a link.
func inFolder(dir, p string) string {
	if strings.Contains("/"+p+"/", "/../") {
		return dir + "/" + p
	}
	return path.Join(dir, p)
}

// unbundle writes the options that a first word without a dash stands for in the common
// way: each letter is an option, and the values follow in the same order.
func (g *arguments) unbundle(p *programs.Program, args []word) []word {
	if !p.Bundled || g.depth > 0 || len(args) == 0 || !args[0].known || args[0].text == "" || args[0].text[0] == '-' {
		return args
	}
	var out []word
	rest := args[1:]
	for i := range len(args[0].text) {
		letter := literal("-" + args[0].text[i:i+1])
		out = append(out, letter)
		if o, ok := p.Option(letter.text); ok && o.Value != "" && !o.Optional && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

// option reads the options of one word, and returns how many of the next words are
// values of theirs.
func (g *arguments) option(p *programs.Program, w word, head string, next []word) (used int) {
	if p.Number && w.known && isNumber(strings.TrimLeft(head[1:], "-+")) {
		g.spell(head)
		return 0
	}
	if strings.HasPrefix(head, "--") || p.Single {
		return g.long(p, w, head, next)
	}
	if o, ok := p.Exact(head); ok && len(head) > 2 && w.known {
		g.mark(o) // a word behind a single dash or a plus sign
		return g.next(o, next)
	}
	for i := 1; i < len(head); i++ {
		o, ok := p.Option(head[:1] + head[i:i+1])
		if i+1 < len(head) {
			if two, found := p.Exact(head[:1] + head[i:i+2]); found { // an option of two letters
				o, ok = two, true
				i++
			}
		}
		if !ok {
			g.strange(head[:1] + head[i:i+1])
			g.spell(head[:1] + head[i:])
			return 0
		}
		g.mark(o)
		if o.Value == "" {
			continue
		}
		rest := w.from(i + 1)
		if i+1 < len(head) || !w.known {
			g.value(o, rest)
			return g.last(o, next)
		}
		return g.next(o, next)
	}
	if !w.known {
		g.open = true
	}
	return 0
}

func (g *arguments) long(p *programs.Program, w word, head string, next []word) (used int) {
	name, _, attached := strings.Cut(head, "=")
	o, ok := p.Option(name)
	if !ok && p.Single && strings.HasPrefix(name, "--") {
		o, ok = p.Option(name[1:]) // both dashes are the same there
	}
	if !ok && p.Joined {
		if o, n := p.Start(head); n > 0 && n < len(head) {
			g.mark(o)
			g.value(o, w.from(n))
			return 0
		}
	}
	switch {
	case !ok && !p.Plain && (name == "--help" || name == "--version"):
		o, ok = programs.Option{Names: []string{name}}, true
	case !ok || !w.known && !attached:
		g.strange(name)
		g.spell(head)
		return 0
	case attached && o.Value == "" && !p.Single:
		g.strange(head)
		g.spell(head)
		return 0
	}
	g.mark(o)
	switch {
	case o.Value == "":
	case attached:
		g.value(o, w.from(len(name)+1))
		return g.last(o, next)
	default:
		return g.next(o, next)
	}
	return 0
}

// next takes the value of an option from the next words, and returns how many they are.
func (g *arguments) next(o programs.Option, next []word) (used int) {
	kind, second, _ := strings.Cut(o.Value, ":")
	switch {
	case o.Value == "" || o.Optional:
	case kind == "list":
		return g.list(next)
	case kind == "pair":
		o.Value = second
		if len(next) < 2 {
			return len(next)
		}
		g.value(o, next[1])
		return 2
	case len(next) > 0:
		g.value(o, next[0])
		used = 1
	}
	return used + g.last(o, next[used:])
}

// last takes all that follows for operands, if an option is the last one of its program.
func (g *arguments) last(o programs.Option, next []word) (used int) {
	if o.Value != "inline" && o.Value != "module" {
		return 0
	}
	g.operands = append(g.operands, next...)
	return len(next)
}

// list counts the words of a list, which ends at the next option or behind an @.
func (g *arguments) list(next []word) int {
	for i, w := range next {
		switch {
		case !w.known || w.glob && strings.IndexByte("*?[", w.text[0]) >= 0:
			g.open = true
		case w.text == "@":
			return i + 1
		case strings.HasPrefix(w.text, "-"):
			return i
		}
	}
	return len(next)
}

func (g *arguments) mark(o programs.Option) {
	for _, n := range o.Names {
		g.given[n] = true
	}
	g.options = append(g.options, o.Names[len(o.Names)-1])
	g.spell(o.Names[len(o.Names)-1])
}

// spell notes an option under the name that it has in its one spelling.
func (g *arguments) spell(name string) {
	if g.spells {
		g.spelled = append(g.spelled, spelledOption{name: name})
	}
}

func (g *arguments) strange(option string) {
	if g.unknown == "" {
		g.unknown = option
	}
}

func (g *arguments) value(o programs.Option, v word) {
	if g.spells {
		last := &g.spelled[len(g.spelled)-1]
		last.value, last.has, last.attached = v.text, true, o.Optional
	}
	switch o.Value {
	case "split":
		if words, ok := splitString(v); ok {
			g.inserted = words
			return
		}
	case "base":
		g.scattered = g.scattered || len(g.operands) > 0
		if v.known && g.base.text != "" && !strings.HasPrefix(v.text, "/") {
			v.text = inFolder(g.base.text, v.text)
		}
		g.base = v
	}
	g.values = append(g.values, setting{name: o.Names[len(o.Names)-1], kind: o.Value, value: v})
}

// informs reports whether the program only prints its help or its version.
func (g *arguments) informs(p *programs.Program) bool {
	return !p.Plain && (g.given["--help"] || g.given["--version"]) ||
		slices.ContainsFunc(p.Rules, func(r programs.Rule) bool {
			return r.Verb == "inert" && len(r.With)+len(r.Without) > 0 && r.Holds(g.has)
		})
}

// kindOf is what the value of an option is, where that depends on other options.
func (g *arguments) kindOf(p *programs.Program, v setting) string {
	for _, r := range p.Rules {
		if r.Verb == "value" && r.Args[0] == v.name && r.Holds(g.has) {
			return r.Args[1]
		}
	}
	return v.kind
}
