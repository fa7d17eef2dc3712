package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// externalDirectory is the permission that paths outside the workspace need.
const externalDirectory = "external_directory"

// entry is one line of a permission list, ready to match.
type entry struct {
	permission string
	pattern    string
	action     v1alpha1.Action
	// like is the pattern taken apart, for an entry that denies or asks; canonical is the
	// same of the one spelling that the table of programs has for it.
	like, canonical likeness
	// won is set when the entry decides; nil if the caller does not count that.
	won *bool
}

// win returns the verdict of the entry, and records that it decided.
func (e *entry) win() verdict {
	if e.won != nil {
		*e.won = true
	}
	return e.action
}

func (c *compiler) compilePermissions() {
	known := []string{externalDirectory, "edit", "read", "*"}
	for _, t := range c.tools {
		known = append(known, t.Name, t.Builtin)
	}
	for i, p := range c.policy.Spec.Permissions {
		pattern := p.Pattern
		if pattern == "" {
			pattern = "*"
		}
		field := fmt.Sprintf("spec.permissions[%d]", i)
		switch p.Action {
		case v1alpha1.ActionAllow, v1alpha1.ActionAsk, v1alpha1.ActionDeny:
		default:
			c.report(Problem{Path: field + ".action", Message: fmt.Sprintf("%q is not an action of a permission", p.Action), Suggestion: "use allow, ask or deny"})
		}
		if p.Permission == "" {
			c.report(Problem{Path: field + ".permission", Message: "the permission has no name"})
		} else if len(c.tools) > 0 && !slices.ContainsFunc(known, func(k string) bool { return k != "" && glob(p.Permission, k) }) {
			c.report(Problem{Path: field + ".permission", Message: fmt.Sprintf("no tool is called %s", p.Permission), Suggestion: expr.Nearest(p.Permission, known), Warning: true, Never: true})
		}
		if m := braces().FindString(pattern); m != "" {
			c.report(Problem{Path: field + ".pattern", Message: fmt.Sprintf("%s is taken literally", m), Suggestion: "only * and ? are special: write one entry for each case", Warning: true})
		}
		if strings.Contains(pattern, "/../") || strings.HasPrefix(pattern, "../") {
			c.report(Problem{Path: field + ".pattern", Message: "paths are cleaned before they are matched, so .. never matches", Warning: true})
		}
		c.out.entries = append(c.out.entries, entry{permission: p.Permission, pattern: pattern, action: p.Action, like: newLikeness(pattern), canonical: canonicalLikeness(pattern)})
	}
}

var braces = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{[^{}]*,[^{}]*\}|\[[^\]]+\]`)
})

// names are what a permission may call a tool: by its call name, by the
// built-in tool behind it, or edit for everything that changes files.
func (t *Tool) names() []string {
	names := []string{t.Name}
	if t.Builtin != "" && t.Builtin != t.Name {
		names = append(names, t.Builtin)
	}
	if t.Builtin == "write" || t.Builtin == "patch" || t.Category == v1alpha1.CategoryEdit {
		names = append(names, "edit")
	}
	return names
}

func (e *entry) concerns(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		// Leaving the workspace is never granted by a wildcard.
		return (n != externalDirectory || e.action != v1alpha1.ActionAllow || e.permission == externalDirectory) && glob(e.permission, n)
	})
}

// verdict is the action of a list of entries; "" if no entry applies.
type verdict = v1alpha1.Action

// rank orders verdicts: the higher one wins.
func rank(v verdict) int {
	return slices.Index([]verdict{"", v1alpha1.ActionAllow, v1alpha1.ActionRedact, v1alpha1.ActionAsk, v1alpha1.ActionDeny}, v)
}

// last returns the action of the last entry that matches.
func last(entries []entry, names []string, matches func(*entry) bool) verdict {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.concerns(names) && matches(e) {
			return e.win()
		}
	}
	return ""
}

// unknown judges something that may match any entry: the strictest it may
// match, where a deny counts as ask.
func unknown(entries []entry, names []string) verdict {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if !e.concerns(names) {
			continue
		}
		if e.action != v1alpha1.ActionAllow {
			e.win()
			return v1alpha1.ActionAsk
		}
		if e.pattern == "*" {
			return e.win()
		}
	}
	// It may match an allow, or nothing.
	return ""
}

// denied reports whether a list denies everything a tool can do: an entry for all of it
// denies, and no later one differs.
func denied(entries []entry, names []string) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if !e.concerns(names) {
			continue
		}
		if e.action != v1alpha1.ActionDeny || e.pattern == "*" {
			return e.action == v1alpha1.ActionDeny
		}
	}
	return false
}

// softens reports whether the list could allow a call of the tool, or ask about it.
func (c *Compiled) softens(t *Tool) bool {
	return slices.ContainsFunc(c.entries, func(e entry) bool {
		if e.action == v1alpha1.ActionAllow {
			return t.risk() != v1alpha1.RiskR3 && e.concerns(t.names())
		}
		return e.action == v1alpha1.ActionAsk && e.concerns(append(t.names(), "read", "edit", externalDirectory))
	})
}

// judge returns the action of one policy's list for a call: the strictest of the actions
// for each thing the call does.
func (c *Compiled) judge(t *Tool, f *facts) verdict {
	if len(c.entries) == 0 {
		return ""
	}
	own := c.judgeOwn(t, f)
	strictest := own
	for _, v := range []verdict{c.judgeOpened(f, own), c.judgeOutside(f, own)} {
		if rank(v) > rank(strictest) {
			strictest = v
		}
	}
	return strictest
}

// judgeOwn judges the call itself: commands, or paths, or addresses.
func (c *Compiled) judgeOwn(t *Tool, f *facts) verdict {
	names := t.names()
	switch {
	case f.shell:
		return c.judgeCommands(names, f)
	case len(f.paths) > 0:
		v := all(f.paths, func(p *Path) verdict {
			return last(c.entries, names, func(e *entry) bool { return e.matchesPath(p, f.root) })
		})
		if !f.talks {
			return v
		}
		// A path beside an address takes no entry about the address away.
		u := onAddresses(slices.DeleteFunc(slices.Clone(c.entries), func(e entry) bool { return !e.aboutAddresses() }), names, f)
		return slices.MaxFunc([]verdict{v, u}, func(a, b verdict) int { return rank(a) - rank(b) })
	case len(f.urls) > 0 || f.talks && f.unread:
		return onAddresses(c.entries, names, f)
	}
	return last(c.entries, names, func(e *entry) bool { return e.pattern == "*" })
}

// onPath is the action of the list for one path under one of the names.
func (c *Compiled) onPath(names []string, p *Path, root string) verdict {
	if p.Clean == shell.Unknown {
		return unknown(c.entries, names)
	}
	return last(c.entries, names, func(e *entry) bool { return e.matchesPath(p, root) })
}

// all returns the strictest verdict over things that must all be allowed.
func all[T any](things []T, judge func(*T) verdict) verdict {
	worst, silent := verdict(""), false
	for i := range things {
		v := judge(&things[i])
		silent = silent || v == ""
		if rank(v) > rank(worst) {
			worst = v
		}
	}
	if silent && worst == v1alpha1.ActionAllow {
		return ""
	}
	return worst
}

func (c *Compiled) judgeCommands(names []string, f *facts) verdict {
	if !slices.ContainsFunc(c.entries, func(e entry) bool { return e.concerns(names) }) {
		return ""
	}
	v := all(f.script.Commands, func(cmd *command) verdict {
		return last(c.entries, names, func(e *entry) bool { return e.matchesCommand(cmd) })
	})
	if m := c.judgePerhaps(names, f); rank(m) > rank(v) {
		v = m
	}
	if f.script.Dynamic {
		u := unknown(c.entries, names)
		if rank(u) > rank(v) {
			return u
		}
		if u == "" && v == v1alpha1.ActionAllow {
			return ""
		}
		return v
	}
	if len(f.script.Commands) == 0 {
		// Nothing found is never allowed.
		if denied(c.entries, names) {
			return v1alpha1.ActionDeny
		}
		return v1alpha1.ActionAsk
	}
	return v
}

// opened names the permissions that an operation on a path needs. A program
// that is not known may do either.
var opened = map[string][]string{opRead: {"read"}, opWrite: {"edit"}, opDelete: {"edit"}, opExecute: {"read", "edit"}}

// judgeOpened judges files that a script opens as if a file tool did: an allow
// for the command does not cover its redirections.
func (c *Compiled) judgeOpened(f *facts, own verdict) verdict {
	if !f.shell {
		return c.judgeReaders(f)
	}
	worst := verdict("")
	if f.script.Dynamic && slices.Contains([]verdict{unknown(c.entries, []string{"read"}), unknown(c.entries, []string{"edit"})}, v1alpha1.ActionAsk) {
		// A path that is known only at run time may be a file that must not be touched.
		worst = v1alpha1.ActionAsk
	}
	for i := range f.paths {
		p := &f.paths[i]
		v := verdict("")
		for _, as := range opened[p.Op] {
			if x := c.onPath([]string{as}, p, f.root); rank(x) > rank(v) {
				v = x
			}
		}
		if p.redirect && v == "" && own == v1alpha1.ActionAllow {
			v = v1alpha1.ActionAsk
		}
		if !p.redirect && v == v1alpha1.ActionAllow {
			v = ""
		}
		if rank(v) > rank(worst) {
			worst = v
		}
	}
	if worst == v1alpha1.ActionAllow {
		// The redirections are allowed; whether the command is, is not said here.
		return ""
	}
	return worst
}

// judgeReaders holds a read that is denied against every tool that reads: a
// file that may not be read is unreadable through all of them.
func (c *Compiled) judgeReaders(f *facts) verdict {
	worst := verdict("")
	for i := range f.paths {
		p := &f.paths[i]
		as := "read"
		if p.Op != opRead {
			as = "edit"
		}
		v := c.onPath([]string{as}, p, f.root)
		if rank(v) > rank(worst) {
			worst = v
		}
	}
	if worst == v1alpha1.ActionAllow {
		return ""
	}
	return worst
}

// judgeOutside judges paths outside the workspace, which an allow does not cover.
func (c *Compiled) judgeOutside(f *facts, own verdict) verdict {
	worst := verdict("")
	if f.script.Dynamic && own == v1alpha1.ActionAllow && unknown(c.entries, []string{externalDirectory}) != v1alpha1.ActionAllow {
		// It may leave the workspace; hiding a path must not get it further than
		// writing it down.
		worst = v1alpha1.ActionAsk
	}
	for i := range f.paths {
		p := &f.paths[i]
		if p.InWorkspace {
			continue
		}
		v := c.onPath([]string{externalDirectory}, p, f.root)
		if v == "" && own == v1alpha1.ActionAllow {
			v = v1alpha1.ActionAsk
		}
		if rank(v) > rank(worst) {
			worst = v
		}
	}
	if worst == v1alpha1.ActionAllow {
		return ""
	}
	return worst
}

// matchesPath compares a pattern with a path. An allow must match where the
// path leads as well as how it is written; for everything else one is enough.
func (e *entry) matchesPath(p *Path, root string) bool {
	written, leads := e.matchesOne(p.Clean, root), e.matchesOne(p.Real, root)
	if e.action == v1alpha1.ActionAllow {
		return written && leads
	}
	return written || leads || e.matchesOne(p.Raw, root)
}

func (e *entry) matchesOne(s, root string) bool {
	if glob(e.pattern, s) {
		return true
	}
	if rest, own := strings.CutPrefix(e.pattern, "~/"); own && home() != "" && glob(home()+"/"+rest, s) {
		return true
	}
	rel, ok := strings.CutPrefix(s, root+"/")
	if !ok {
		// A folder matches a pattern for what is inside it, unless to allow.
		return e.action != v1alpha1.ActionAllow && glob(e.pattern, s+"/")
	}
	if glob(e.pattern, rel) || glob(e.pattern, "./"+rel) {
		return true
	}
	if e.action == v1alpha1.ActionAllow {
		return false
	}
	return glob(e.pattern, rel+"/") || !strings.Contains(e.pattern, "/") && glob(e.pattern, path.Base(rel))
}

// matchesCommand compares a pattern with a simple command.
func (e *entry) matchesCommand(c *command) bool {
	if e.pattern == "*" {
		return true
	}
	if e.action == v1alpha1.ActionAllow {
		return e.allows(c)
	}
	return slices.ContainsFunc(c.forms(), func(form string) bool { return trailing(e.pattern, form) }) || e.like.matches(c) || e.canonical.matches(c.canonical())
}

// allows is stricter than a glob: the pattern's first word is the whole name of
// the program, so that ls* is not lsof, and a program elsewhere is another one.
func (e *entry) allows(c *command) bool {
	if c.elsewhere || c.Name == "?" || c.Opaque != "" && !e.names() || slices.Contains(c.Argv, "?") && !strings.HasSuffix(e.pattern, "*") {
		return false
	}
	word, _, _ := strings.Cut(e.pattern, " ")
	if name := strings.TrimSuffix(word, "*"); name != word && name != "" && !strings.HasSuffix(name, "/") && c.program() != name {
		return false
	}
	if trailing(e.pattern, c.line()) {
		return true
	}
	global, rest, harmless := subcommand(c.Argv)
	return harmless && len(global) > 0 && len(rest) > 0 && trailing(e.pattern, strings.Join(append([]string{c.program()}, rest...), " "))
}

// trailing is a glob whose final " *" is optional.
func trailing(pattern, s string) bool {
	if glob(pattern, s) {
		return true
	}
	short, ok := strings.CutSuffix(pattern, " *")
	return ok && glob(short, s)
}
