package shell

import (
	"strings"
)

// optionTable lists all options of a program in the form that getopt takes: a single
// letter is a short option, a longer name a long one, with a colon if the option takes a
// value, with two if the value can only be attached. A letter for the kind of value may
// follow: r a file that is read, w one that is written, s a script, C a folder that the
// program changes to, x something that starts programs.
//
// The table is closed: an option that is not in it makes the command unknown, since the
// option determines what the next argument is.
type optionTable string

// stopAtOperand ends the options at the first argument that is not one.
const stopAtOperand = true

// option is one that was given.
type option struct {
	name  string
	value word
	// kind of the value, see optionTable.
	kind string
	// after is the index of the argument behind the option and its value.
	after int
}

// parsed are the arguments of a command.
type parsed struct {
	options  []option
	operands []word
}

// find returns the entry of an option. A long name may be shortened as long as it is
// unambiguous.
func (t optionTable) find(name string, long bool) (full, colons, kind string, ok bool) {
	found := 0
	for f := range strings.FieldsSeq(string(t)) {
		entry, k, _ := strings.Cut(f, ":")
		takes := ""
		if len(entry) < len(f) {
			takes = ":"
			if strings.HasPrefix(k, ":") {
				takes, k = "::", k[1:]
			}
		}
		switch {
		case entry == name && (len(entry) > 1) == long:
			return entry, takes, k, true
		case long && len(entry) > 1 && strings.HasPrefix(entry, name):
			found++
			full, colons, kind = entry, takes, k
		}
	}
	return full, colons, kind, found == 1
}

// parse splits arguments as getopt_long does. ok is false if an option is not known, or if
// the role of an argument cannot be determined.
func (t optionTable) parse(args []word, stop bool) (p parsed, ok bool) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known || w.glob && stop:
			// It may be several arguments, or an option.
			if stop && (w.split || w.glob) {
				return p, false
			}
			p.operands = append(p.operands, w)
			if stop {
				p.operands = append(p.operands, args[i+1:]...)
				return p, true
			}
		case w.text == "--":
			p.operands = append(p.operands, args[i+1:]...)
			return p, true
		case len(w.text) < 2 || w.text[0] != '-':
			if stop {
				p.operands = append(p.operands, args[i:]...)
				return p, true
			}
			p.operands = append(p.operands, w)
		default:
			before := len(p.options)
			used, good := t.one(&p, args[i:])
			if !good {
				return p, false
			}
			i += used - 1
			for j := before; j < len(p.options); j++ {
				p.options[j].after = i + 1
			}
		}
	}
	return p, true
}

// one reads the options of one argument, and returns how many arguments they take.
func (t optionTable) one(p *parsed, args []word) (used int, ok bool) {
	w := args[0]
	if name, isLong := strings.CutPrefix(w.text, "--"); isLong {
		name, value, attached := strings.Cut(name, "=")
		full, colons, kind, known := t.find(name, true)
		switch {
		case !known || attached && colons == "":
			return 0, false
		case attached:
			p.options = append(p.options, option{name: full, value: word{text: value, known: true, glob: w.glob}, kind: kind})
		case colons == ":":
			if len(args) < 2 {
				return 0, false
			}
			p.options = append(p.options, option{name: full, value: args[1], kind: kind})
			return 2, true
		default:
			p.options = append(p.options, option{name: full, kind: kind})
		}
		return 1, true
	}
	for i := 1; i < len(w.text); i++ {
		full, colons, kind, known := t.find(w.text[i:i+1], false)
		if !known {
			return 0, false
		}
		rest := w.text[i+1:]
		switch {
		case colons == "":
			p.options = append(p.options, option{name: full, kind: kind})
			continue
		case rest != "":
			p.options = append(p.options, option{name: full, value: word{text: rest, known: true, glob: w.glob}, kind: kind})
		case colons == "::":
			p.options = append(p.options, option{name: full, kind: kind})
		case len(args) < 2:
			return 0, false
		default:
			p.options = append(p.options, option{name: full, value: args[1], kind: kind})
			return 2, true
		}
		return 1, true
	}
	return 1, true
}
