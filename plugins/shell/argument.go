package shell

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// optionList names the options of a program: a letter is a short option, a longer name a
// long one. One colon behind it: it takes a value, which is attached or the next argument.
// Two: only an attached value. Long names are not shortened.
type optionList string

// find returns the colons of an option.
func (l optionList) find(name string, long bool) (colons string, ok bool) {
	if long != (len(name) > 1) {
		return "", false
	}
	for f := range strings.FieldsSeq(string(l)) {
		if bare := strings.TrimRight(f, ":"); bare == name {
			return f[len(bare):], true
		}
	}
	return "", false
}

// checkArgs refuses arguments that are not listed, and paths outside the workspace.
func (p *program) checkArgs(name string, args []string, at *place) error {
	if p.commands != nil {
		if len(args) == 0 {
			return sdk.Errorf("%s needs a subcommand: %s", name, offered())
		}
		sub, ok := p.commands[args[0]]
		if !ok { // an option here would come before the subcommand: git -c, --exec-path
			return sdk.Errorf("%s %s is not in the list of commands: %s", name, word(args[0]), offered())
		}
		return sub.checkArgs(name+" "+args[0], args[1:], at)
	}
	if p.versions != nil {
		return sdk.Errorf("%s may only be asked for its version: %s", name, strings.Join(p.versions, " or "))
	}
	if p.takes == expression {
		return checkFind(args, at)
	}
	operands, patterned, err := p.split(name, args)
	if err != nil {
		return err
	}
	switch p.takes {
	case none, expression:
		if len(operands) > 0 {
			return sdk.Errorf("%s: %s is not accepted: only options are", name, word(operands[0]))
		}
	case pattern:
		if !patterned && len(operands) > 0 {
			operands = operands[1:]
		}
		return at.hold(operands)
	case paths, revisions:
		return at.hold(operands)
	}
	return nil
}

// split separates the options from the other arguments, as getopt does. patterned reports
// that an option is the pattern.
func (p *program) split(name string, args []string) (operands []string, patterned bool, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(operands, args[i+1:]...), patterned, nil
		case a == "-" || !strings.HasPrefix(a, "-"):
			operands = append(operands, a)
			continue
		case p.count && digits(a[1:]):
			continue
		}
		next, opt, err := p.option(name, a)
		if err != nil {
			return nil, false, err
		}
		patterned = patterned || opt == "e" || opt == "regexp"
		if !next {
			continue
		}
		// A value that looks like an option is refused: the program could take it for one.
		if i++; i == len(args) || strings.HasPrefix(args[i], "-") {
			return nil, false, sdk.Errorf("%s: the option %s needs a value, which does not begin with a dash", name, word(a))
		}
		if err := safeValue(name, opt, args[i]); err != nil {
			return nil, false, err
		}
	}
	return operands, patterned, nil
}

// option checks one argument with options; next reports that the last of them takes the
// next argument.
func (p *program) option(name, a string) (next bool, last string, err error) {
	unknown := sdk.Errorf("%s: the option %s is not in the list of what only shows", name, word(a))
	if long, ok := strings.CutPrefix(a, "--"); ok {
		long, value, attached := strings.Cut(long, "=")
		colons, ok := p.options.find(long, true)
		switch {
		case !ok || attached && colons == "":
			return false, "", unknown
		case attached:
			return false, long, safeValue(name, long, value)
		}
		return colons == ":", long, nil
	}
	for i := 1; i < len(a); i++ {
		colons, ok := p.options.find(a[i:i+1], false)
		switch {
		case !ok:
			return false, "", unknown
		case colons == "":
			continue
		case i+1 < len(a): // the rest is the value
			return false, a[i : i+1], safeValue(name, a[i:i+1], a[i+1:])
		}
		return colons == ":", a[i : i+1], nil
	}
	return false, "", nil
}

// safeValue refuses formats of git that start gpg.
func safeValue(name, option, value string) error {
	if slices.Contains([]string{"format", "pretty", "sort"}, option) && (strings.Contains(value, "%G") || strings.Contains(value, "signature")) {
		return sdk.Errorf("%s: the value of --%s starts another program (gpg)", name, option)
	}
	return nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// findTests are the tests of find, and how many values they take; actions other than to
// print are left out.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-regex": 1, "-iregex": 1, "-type": 1, "-maxdepth": 1, "-mindepth": 1, "-size": 1, "-mtime": 1, "-mmin": 1,
	"-ctime": 1, "-cmin": 1, "-atime": 1, "-amin": 1, "-perm": 1, "-links": 1, "-empty": 0, "-executable": 0, "-readable": 0, "-writable": 0, "-not": 0, "!": 0,
	"(": 0, ")": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, "-prune": 0, "-print": 0, "-true": 0, "-false": 0, "-depth": 0, "-xdev": 0, "-ls": 0,
}

// checkFind refuses parts of an expression that are not listed.
func checkFind(args []string, at *place) error {
	i := 0
	for i < len(args) && !strings.HasPrefix(args[i], "-") && args[i] != "!" && args[i] != "(" {
		i++
	}
	if err := at.hold(args[:i]); err != nil {
		return err
	}
	for ; i < len(args); i++ {
		values, ok := findTests[args[i]]
		if !ok {
			return sdk.Errorf("find: %s is not in the list of what only shows", word(args[i]))
		}
		if i += values; i >= len(args) {
			return sdk.Errorf("find: the last test needs a value")
		}
	}
	return nil
}
