package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// A command is opaque when it is known which program runs, but not what that program does:
// it may do anything that its sandbox allows. Unlike a script that is dynamic, the facts
// are what they are; only nothing may be concluded from what is not among them.
//
//	decided by                             a script with an opaque command
//	deny and ask rules and entries         by the facts that are known
//	allow entry that names the program     allowed
//	allow entry for *                      allowed: it speaks of every command
//	allow rule over cmd, paths or net      not allowed, unless its condition reads opaque
//	byRisk                                 asked, unless the call is contained

// condition is what the conclusions of a rule rest on.
type condition struct {
	// facts: it reads what a script does; opaque: and whether all of that is known.
	facts, opaque bool
	// words are the texts that facts are compared with.
	words []string
}

// examine returns what a condition reads, by itself and by its variables.
func (c *compiler) examine(p *expr.Program, vars map[string]*expr.Program) condition {
	var out condition
	if p == nil {
		return out
	}
	done := map[string]bool{}
	var take func(p *expr.Program)
	take = func(p *expr.Program) {
		out.facts = out.facts || p.Reads("cmd") || p.Reads("paths") || p.Reads("net")
		out.opaque = out.opaque || p.ReadsField("opaque", "cmd")
		for _, w := range append(p.Literals(), c.paramTexts(p)...) {
			out.words = add(out.words, w)
		}
		if !p.Reads("variables") {
			return
		}
		names := p.Fields("variables")
		if len(names) == 0 { // all of them
			names = slices.Sorted(maps.Keys(vars))
		}
		for _, name := range names {
			if v := vars[name]; v != nil && !done[name] {
				done[name] = true
				take(v)
			}
		}
	}
	take(p)
	return out
}

// paramTexts are the texts in the parameters that an expression reads.
func (c *compiler) paramTexts(p *expr.Program) (texts []string) {
	params, ok := c.out.params.(map[string]any)
	if !ok || !p.Reads("params") {
		return nil
	}
	names := p.Fields("params")
	if len(names) == 0 {
		names = slices.Sorted(keys(params))
	}
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, x := range v {
				collect(x)
			}
		case map[string]any:
			for _, x := range v {
				collect(x)
			}
		}
	}
	for _, name := range names {
		collect(params[name])
	}
	return texts
}

// blind reports whether a condition that holds says nothing about the call: it rests on the
// facts of a script with an opaque command, and does not read that they are not all.
func (r *rule) blind(f *facts) bool {
	return f.shell && f.script.Opaque && r.cond.facts && !r.cond.opaque
}

// opaque returns the commands of which it is not known what they do, with the reasons.
func (f *facts) opaque() (commands []string) {
	for i := range f.script.Commands {
		if c := &f.script.Commands[i]; c.Opaque != "" {
			commands = add(commands, c.Name+": "+c.Opaque)
		}
	}
	return commands
}

// unclear is the sentence about the first opaque command, "" where there is none.
func (f *facts) unclear() string {
	for i := range f.script.Commands {
		if c := &f.script.Commands[i]; c.Opaque != "" {
			return fmt.Sprintf("what %s does is not known (%s)", quoteWord(c.Name), c.Opaque)
		}
	}
	return ""
}

func quoteWord(w string) string { return "`" + strings.ReplaceAll(w, "`", "'") + "`" }

// perhaps is the input in which an opaque command has started the programs among its words
// that the rule speaks of; nil where it speaks of none of them.
func (in *input) perhaps(r *rule) *input {
	var more []command
	for _, c := range in.facts.script.perhaps {
		if slices.Contains(r.cond.words, c.Name) {
			more = append(more, c)
		}
	}
	if len(more) == 0 || !r.cond.facts {
		return nil
	}
	f := *in.facts
	f.script.Commands = append(slices.Clone(f.script.Commands), more...)
	out := *in
	out.facts, out.variables, out.large = &f, map[*Compiled]*expr.Lazy{}, in.large || f.exceeds()
	out.vars = maps.Clone(in.vars)
	out.vars["cmd"] = func() any { return f.cmdValue() }
	return &out
}

// names reports whether an entry says which program it is about.
func (e *entry) names() bool {
	word, _, _ := strings.Cut(e.pattern, " ")
	word = strings.TrimSuffix(word, "*")
	return word != "" && !strings.ContainsAny(word, "*?")
}

// judgePerhaps judges a program that an opaque command may start: an entry that asks about
// it or denies it counts, one that allows it only ends what an entry before it says.
func (c *Compiled) judgePerhaps(names []string, f *facts) verdict {
	worst := verdict("")
	for i := range f.script.perhaps {
		cmd := &f.script.perhaps[i]
		v := last(c.entries, names, func(e *entry) bool { return e.names() && e.matchesCommand(cmd) })
		if v != v1alpha1.ActionAllow && rank(v) > rank(worst) {
			worst = v
		}
	}
	return worst
}
