package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// causeLimit bounds the paths and the commands that are looked at for the cause of a decision.
const causeLimit = 64

// cause returns what in a call a rule refuses: the first path or command for which alone
// the rule holds, if there is one.
func (r *rule) cause(ctx context.Context, in *input) cause {
	if r.when == nil || r.broken || r.negated || !r.cond.facts {
		return cause{}
	}
	if more := in.perhaps(r); more != nil {
		in = more
	}
	holds := func(in *input) bool {
		t, err := r.truth(ctx, in)
		return err == nil && t == expr.True
	}
	f := in.facts
	if !holds(in.on()) {
		for i := range f.paths[:min(len(f.paths), causeLimit)] {
			if p := f.paths[i]; p.Real != shell.Unknown && holds(in.on(p)) {
				return f.touched(&p)
			}
		}
	}
	if f.shell && !holds(in.running()) {
		for _, c := range f.script.Commands[:min(len(f.script.Commands), causeLimit)] {
			if holds(in.running(c)) {
				return f.run(&c)
			}
		}
	}
	return cause{}
}

// running is the input of the same call as if it ran nothing but these commands.
func (in *input) running(commands ...command) *input {
	f := *in.facts
	f.script.Commands = commands
	out := *in
	out.facts, out.unknown, out.variables = &f, nil, map[*Compiled]*expr.Lazy{}
	out.vars = maps.Clone(in.vars)
	out.vars["cmd"] = func() any { return f.cmdValue() }
	return &out
}

// touched describes a path of a call by its word, and what is known of it.
func (f *facts) touched(p *Path) cause {
	text := quoteWord(p.Raw)
	for i := range f.script.Commands {
		c := &f.script.Commands[i]
		if at := slices.Index(c.Argv, p.Raw); at > 0 {
			text += fmt.Sprintf(", argument %d of %s,", at, c.Name)
			break
		}
	}
	if p.redirect {
		text += ", a redirection,"
	}
	text += " " + map[string]string{opRead: "is read", opWrite: "is written", opDelete: "is deleted", opExecute: "may be used"}[p.Op]
	switch {
	case !p.InWorkspace && p.Real != p.Clean && p.Real != p.Raw:
		text += ", outside the workspace: " + p.Real
	case !p.InWorkspace:
		text += ", outside the workspace"
	}
	if p.Secret {
		text += ", named as files of credentials are"
	}
	return cause{text, []string{p.Raw, p.Clean, p.Real}}
}

// run describes a command.
func (f *facts) run(c *command) cause {
	line := []rune(c.line())
	if len(line) > 80 {
		line = append(line[:80], '…')
	}
	text := quoteWord(string(line))
	if slices.ContainsFunc(f.script.perhaps, func(x command) bool { return slices.Equal(x.Argv, c.Argv) }) && len(c.Wrappers) > 0 {
		return cause{text + ", which " + c.Wrappers[len(c.Wrappers)-1] + " may start", nil}
	}
	return cause{text, []string{string(line)}}
}

// cause is what in a call a decision is about, with the names of it by which a message may
// speak of it.
type cause struct {
	text  string
	names []string
}

// because adds the cause to a message that does not name it.
func because(message string, c cause) string {
	named := func(name string) bool { return len(name) > 3 && strings.Contains(message, name) }
	if c.text == "" || slices.ContainsFunc(c.names, named) {
		return message
	}
	return bounded(message + " (" + c.text + ")")
}

// causeOf names what in a call a list refuses: the first command or path with the verdict.
func (c *Compiled) causeOf(t *Tool, f *facts, v verdict) cause {
	names := t.names()
	judged := func(matches func(*entry) bool, about cause) cause {
		for i := len(c.entries) - 1; i >= 0; i-- {
			if e := &c.entries[i]; e.concerns(names) && matches(e) {
				if e.action == v {
					return cause{text: fmt.Sprintf("%s, by %s %q", about.text, e.permission, e.pattern)}
				}
				return cause{}
			}
		}
		return cause{}
	}
	if f.shell {
		for i := range f.script.Commands {
			cmd := &f.script.Commands[i]
			if at := judged(func(e *entry) bool { return e.matchesCommand(cmd) }, f.run(cmd)); at.text != "" {
				return at
			}
		}
		for i := range f.script.perhaps {
			cmd := &f.script.perhaps[i]
			if at := judged(func(e *entry) bool { return e.names() && e.matchesCommand(cmd) }, f.run(cmd)); at.text != "" {
				return at
			}
		}
	}
	for i := range f.paths {
		p := &f.paths[i]
		for _, as := range append(slices.Clone(opened[p.Op]), names...) {
			if as == externalDirectory || c.onPath([]string{as}, p, f.root) == v && v != v1alpha1.ActionAllow {
				return f.touched(p)
			}
		}
		if !p.InWorkspace {
			return f.touched(p)
		}
	}
	if f.script.Dynamic && len(f.script.Reasons) > 0 {
		return cause{text: f.script.Reasons[0]}
	}
	return cause{}
}
