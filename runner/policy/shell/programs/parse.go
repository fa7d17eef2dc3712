package programs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// verbs are those of rules, with the fewest words that follow.
var verbs = map[string]int{
	"operands": 1, "default": 1, "reads": 1, "writes": 1, "caches": 1, "rewrites": 1, "starts": 1, "network": 0, "anywhere": 0, "tree": 0, "opaque": 1, "repository": 0, "dynamic": 1, "unresolved": 1, "inert": 0, "environment": 0,
	"saves": 0,
	"value": 2,
}

// kinds are those of values and operands.
var kinds = []string{
	"text", "read", "write", "delete", "rewrite", "replace", "move", "copy", "link", "names", "folder", "url", "host", "port", "remote", "data", "pattern", "mode",
	"command", "within", "architecture", "shell", "script", "assign", "unknown", "word", "any", "beside", "inside",
	"revision", "compared", "pathspec", "indexed", "repository", "source",
	"expanded", "format", "code", "query", "account", "exchange", "listed", "page",
	"passed", "target", "inline", "module", "program", "place",
	"variables", "variable", "split", "fed", "output", "base", "restore", "pack", "unpack", "list", "sync", "pair", "filled",
}

// inheritLimit bounds how many descriptions are taken over one from another.
const inheritLimit = 4

// parse reads the description of one program.
func parse(entry string, depth int) (*Program, error) {
	if depth > inheritLimit {
		return nil, errors.New("like leads in a circle")
	}
	p := &Program{}
	for n, line := range strings.Split(entry, "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") || n == 0 {
			continue
		}
		if err := p.line(words[0], words[1:], depth); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return p, nil
}

func (p *Program) line(verb string, args []string, depth int) error {
	switch verb {
	case "option":
		for _, a := range args {
			o, err := parseOption(a)
			if err != nil {
				return err
			}
			p.Options = append(p.Options, o)
		}
	case "like":
		index, err := entries()
		if err != nil {
			return err
		}
		other, err := parse(index[strings.Join(args, " ")], depth+1)
		if err != nil {
			return err
		}
		p.Options = append(p.Options, other.Options...)
		p.Rules = append(p.Rules, other.Rules...)
		p.Steered = append(p.Steered, other.Steered...)
		p.Subcommands, p.Stop, p.Single, p.Plain = other.Subcommands, other.Stop, other.Single, other.Plain
		p.Number, p.Literal, p.Negated, p.Joined = other.Number, other.Literal, other.Negated, other.Joined
		p.Bundled, p.Response = other.Bundled, other.Response
	case "options":
		index, err := entries()
		if err != nil {
			return err
		}
		other, err := parse(index[strings.Join(args, " ")], depth+1)
		if err != nil {
			return err
		}
		p.Options = append(p.Options, other.Options...)
	case "steered":
		p.Steered = append(p.Steered, args...)
	case "subcommands":
		p.Subcommands, p.Stop = true, true
	case "stop":
		p.Stop = true
	case "single":
		p.Single = true
	case "plain":
		p.Plain = true
	case "literal":
		p.Literal, p.Plain = true, true
	case "number":
		p.Number = true
	case "negated":
		p.Negated = true
	case "joined":
		p.Single, p.Joined = true, true
	case "bundled":
		p.Bundled = true
	case "response":
		p.Response = true
	default:
		return p.rule(verb, args)
	}
	return nil
}

func (p *Program) rule(verb string, args []string) error {
	least, ok := verbs[verb]
	if !ok {
		return fmt.Errorf("%s is no verb of the format", verb)
	}
	r := Rule{Verb: verb}
	list := &r.Args
	for i, a := range args {
		conditions := i+1 < len(args) && condition(args[i+1])
		switch {
		case a == "with" && conditions:
			list = &r.With
		case a == "without" && conditions:
			list = &r.Without
		default:
			*list = append(*list, a)
		}
	}
	if len(r.Args) < least {
		return fmt.Errorf("%s needs something behind it", verb)
	}
	if verb == "operands" || verb == "value" {
		for i, kind := range r.Args {
			if i == 0 && verb == "value" {
				continue // the option
			}
			kind, _, _ = strings.Cut(strings.TrimSuffix(kind, "..."), ":")
			if !slices.Contains(kinds, kind) {
				return fmt.Errorf("%s is no kind of an operand", kind)
			}
		}
	}
	p.Rules = append(p.Rules, r)
	return nil
}

// condition reports whether a word is an option, or a pseudo option.
func condition(word string) bool {
	return word[0] == '-' || word[0] == '+' || word == "nothing" || word == "one" || word == "scattered"
}

// parseOption reads -o,--output=write, --color[=text] or -v,--verbose.
func parseOption(text string) (Option, error) {
	names, value, has := strings.Cut(text, "=")
	o := Option{Value: value}
	if has && strings.HasSuffix(names, "[") {
		names, o.Value, o.Optional = strings.TrimSuffix(names, "["), strings.TrimSuffix(value, "]"), true
	}
	o.Names = strings.Split(names, ",")
	for _, n := range o.Names {
		if len(n) < 2 || n[0] != '-' && n[0] != '+' {
			return o, fmt.Errorf("%q is no option", n)
		}
	}
	if kind, _, _ := strings.Cut(o.Value, ":"); has && !slices.Contains(kinds, kind) {
		return o, fmt.Errorf("%q is no kind of a value", o.Value)
	}
	return o, nil
}
