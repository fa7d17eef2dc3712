// Package programs describes what the programs of a command line do with their arguments.
//
// The description is data: the files *.txt beside this one, in the format of format.txt.
// They are closed lists. An option, a subcommand or a program that they do not name is not
// known, and whoever asks must assume the worst.
package programs

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed *.txt
var files embed.FS

// Program is a program or one of its subcommands.
type Program struct {
	// Name is the first of its names; that of a subcommand has those before it: "git log".
	Name string
	// Same is the name that it has in one spelling: of names for the same program, the first.
	Same    string
	Options []Option
	// Rules say what it does with operands and in general, in the order of the text.
	Rules []Rule
	// Subcommands: its first operand names one of them.
	Subcommands bool
	// Stop ends the options at the first operand.
	Stop bool
	// Single options have one dash and a word, as -name.
	Single bool
	// Plain programs know neither --help nor --version.
	Plain bool
	// Literal programs know no options: all words are operands.
	Literal bool
	// Number: an option may be a dash and a number.
	Number bool
	// Joined: a single option's value may follow it without anything between them.
	Joined bool
	// Negated: any long option may have no- in front of its name.
	Negated bool
	// Bundled options may be the first word, without a dash.
	Bundled bool
	// Response: behind @ is a file that holds more arguments.
	Response bool
	// Steered are variables and files that decide what it does.
	Steered []string
}

// Option is one option under all its names.
type Option struct {
	// Names have their dashes: -o, --output.
	Names []string
	// Value is what its value is, see the format; "" if it takes none.
	Value string
	// Optional values must be attached.
	Optional bool
}

// Rule is one effect, under conditions.
type Rule struct {
	// Verb is operands, reads, writes, ... as in the format.
	Verb string
	Args []string
	// With holds if one of these options is there, Without if none is.
	With, Without []string
}

// Text is what follows the verb.
func (r Rule) Text() string { return strings.Join(r.Args, " ") }

// Holds reports whether the conditions are met by the options that are there.
func (r Rule) Holds(given func(option string) bool) bool {
	if slices.ContainsFunc(r.Without, given) {
		return false
	}
	return len(r.With) == 0 || slices.ContainsFunc(r.With, given)
}

// entries is where each program stands, by its name.
var entries = sync.OnceValues(func() (map[string]string, error) {
	dir, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("read the table of programs: %w", err)
	}
	index := map[string]string{}
	for _, f := range dir {
		text, err := files.ReadFile(f.Name())
		if err != nil {
			return nil, fmt.Errorf("read the table of programs: %w", err)
		}
		for head, entry := range blocks(string(text)) {
			for name := range namesOf(head) {
				if index[name] != "" {
					return nil, fmt.Errorf("%s: the program %s is described twice", f.Name(), name)
				}
				index[name] = entry
			}
		}
	}
	return index, nil
})

// blocks yields the text of each program with what follows the word program.
func blocks(text string) func(yield func(head, entry string) bool) {
	return func(yield func(head, entry string) bool) {
		const start = "\nprogram "
		text = "\n" + text
		for at := strings.Index(text, start); at >= 0; {
			text = text[at+1:]
			at = strings.Index(text, start)
			entry := text
			if at >= 0 {
				entry = text[:at]
			}
			head, _, _ := strings.Cut(strings.TrimPrefix(entry, start[1:]), "\n")
			if !yield(head, entry) {
				return
			}
		}
	}
}

// namesOf returns all names of a program, each with the one that it has in one spelling.
// Alternatives are separated by commas, names for the same by an equals sign; a subcommand
// follows its program.
func namesOf(head string) map[string]string {
	names := map[string]string{"": ""}
	for word := range strings.FieldsSeq(head) {
		longer := map[string]string{}
		for before, same := range names {
			for alternative := range strings.SplitSeq(word, ",") {
				first, _, _ := strings.Cut(alternative, "=")
				for name := range strings.SplitSeq(alternative, "=") {
					longer[strings.TrimSpace(before+" "+name)] = strings.TrimSpace(same + " " + first)
				}
			}
		}
		names = longer
	}
	return names
}

var parsed sync.Map // name -> *Program

// Find returns the description of a program, or of a subcommand as "git log".
func Find(name string) (*Program, bool) {
	if p, ok := parsed.Load(name); ok {
		return p.(*Program), true
	}
	index, err := entries()
	entry, ok := index[name]
	if at := strings.LastIndexAny(name, ".-") + 1; !ok && at > 0 && at < len(name) && strings.Trim(name[at:], "0123456789") == "" {
		return Find(name[:at] + "*")
	}
	if err != nil || !ok {
		return nil, false
	}
	p, err := parse(entry, 0)
	if err != nil {
		return nil, false
	}
	head, _, _ := strings.Cut(strings.TrimPrefix(entry, "program "), "\n")
	p.Name, p.Same = name, namesOf(head)[name]
	known, _ := parsed.LoadOrStore(name, p)
	return known.(*Program), true
}

// Option finds an option by its name with dashes. A long one may be cut short as long as
// that is unambiguous; exact is false then.
func (p *Program) Option(name string) (Option, bool) {
	var found Option
	matches := 0
	for _, o := range p.Options {
		begins := false
		for _, n := range o.Names {
			if n == name {
				return o, true
			}
			begins = begins || strings.HasPrefix(name, "--") && len(name) > 2 && strings.HasPrefix(n, name)
		}
		if begins && !p.Single {
			found = o
			matches++
		}
	}
	if bare, negated := strings.CutPrefix(name, "--no-"); matches == 0 && negated && p.Negated {
		if o, ok := p.Option("--" + bare); ok {
			return Option{Names: []string{"--no-" + o.Names[len(o.Names)-1][2:]}}, true
		}
	}
	return found, matches == 1
}

// Start finds the option with the longest name that a word begins with, and that takes a
// value.
func (p *Program) Start(word string) (found Option, length int) {
	for _, o := range p.Options {
		for _, n := range o.Names {
			if o.Value != "" && len(n) > length && strings.HasPrefix(word, n) {
				found, length = o, len(n)
			}
		}
	}
	return found, length
}

// Exact finds an option by one of its whole names.
func (p *Program) Exact(name string) (Option, bool) {
	for _, o := range p.Options {
		if slices.Contains(o.Names, name) {
			return o, true
		}
	}
	return Option{}, false
}

// Plus reports whether options may begin with a plus sign.
func (p *Program) Plus() bool {
	return slices.ContainsFunc(p.Options, func(o Option) bool { return o.Names[0][0] == '+' })
}
