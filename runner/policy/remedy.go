package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// Remedy is a change of policies after which a decision no longer keeps a call from being
// allowed. One of its fields is set.
type Remedy struct {
	// Rule is to be added to a policy.
	Rule *v1alpha1.Rule
	// Entries are to be appended to the permissions of the policy that has decided.
	Entries []v1alpha1.Permission
	// Except is to be joined to the condition of the rule that has decided, with &&.
	Except string
	// Omit: the rule that has decided must go.
	Omit bool
}

// Remedy returns what to change about one of the blockers of a call.
func (e *Engine) Remedy(ctx context.Context, call message.ToolCall, d message.Decision) Remedy {
	j, ok := e.tools[call.Tool]
	if !ok {
		return Remedy{}
	}
	in, err := e.input(j, call)
	if err != nil {
		return Remedy{}
	}
	policy, rule := ruleOf(d.Rule)
	if !slices.ContainsFunc(e.policies, func(c *Compiled) bool { return c.name == policy }) {
		for _, c := range e.ceilings {
			if slices.ContainsFunc(c.policies, func(p *Compiled) bool { return p.name == policy }) {
				return c.Remedy(ctx, call, d)
			}
		}
	}
	switch {
	case policy == "" || rule == "default":
		r := v1alpha1.Rule{Name: "allow-" + strings.ToLower(strings.ReplaceAll(j.tool.Name, "_", "-")), When: strings.Join(j.exactly(in), " && "), Action: v1alpha1.ActionAllow}
		if r.Match.Tools = []string{j.tool.Name}; j.tool.risk() == v1alpha1.RiskR3 {
			r.Match.Risks = []v1alpha1.Risk{v1alpha1.RiskR3}
		}
		return Remedy{Rule: &r}
	case rule == "permissions":
		for _, c := range e.policies {
			if c.name == policy {
				return Remedy{Entries: c.allowing(j.tool, in.facts)}
			}
		}
	}
	return e.exception(j, in, d.Rule)
}

// exception is a remedy for a rule. A rule about reading speaks twice: of the call, and of
// each file that the call reads.
func (e *Engine) exception(j *judged, in *input, rule string) Remedy {
	except := ""
	if _, speaks := j.without(rule); speaks {
		except = "!(" + strings.Join(append([]string{"tool.name == " + celText(j.tool.Name)}, j.exactly(in)...), " && ") + ")"
	}
	if _, reads := e.reader.without(rule); reads && j != e.reader {
		if in.facts.script.Dynamic || len(in.facts.script.Trees)+len(in.facts.script.Repositories) > 0 {
			return Remedy{Omit: true} // which files it reads is not written in the call
		}
		var files []string
		for i := range in.facts.paths {
			files = add(files, celText(in.facts.paths[i].Real))
		}
		if len(files) > 0 {
			except = strings.TrimPrefix(except+" && !(tool.name == "+celText(e.reader.tool.Name)+" && paths.exists(p, p.real in ["+strings.Join(files, ", ")+"]))", " && ")
		}
	}
	return Remedy{Except: except, Omit: except == ""}
}

// exactly is a condition that holds for calls with the arguments of this one. Lists and
// objects among them are not compared.
func (j *judged) exactly(in *input) (all []string) {
	given := in.args()
	for _, name := range slices.Sorted(keys(given)) {
		value := ""
		switch v := given[name].(type) {
		case string:
			value = celText(v)
		case bool:
			value = strconv.FormatBool(v)
		case int64:
			value = strconv.FormatInt(v, 10)
		default:
			continue
		}
		if !identifier().MatchString(name) {
			continue
		}
		field := "call.args." + name
		all = append(all, "has("+field+") && "+field+" == "+value)
	}
	return all
}

// celText writes a text as an expression does, with the escapes of JSON where it needs any.
func celText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || r == '\\' || !unicode.IsPrint(r) }) {
		return "'" + s + "'"
	}
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}

// allowing returns entries behind which the list allows a call: as narrow as they can be.
func (c *Compiled) allowing(t *Tool, f *facts) []v1alpha1.Permission {
	var entries []v1alpha1.Permission
	allow := func(permission, pattern string) {
		entries = add(entries, v1alpha1.Permission{Permission: permission, Pattern: pattern, Action: v1alpha1.ActionAllow})
	}
	refused := func(v verdict) bool { return v != "" && v != v1alpha1.ActionAllow }
	own := t.names()[0]
	for i := range f.script.Commands {
		cmd := &f.script.Commands[i]
		if slices.Contains(cmd.Argv, shell.Unknown) || cmd.elsewhere {
			continue
		}
		if last(c.entries, t.names(), func(e *entry) bool { return e.matchesCommand(cmd) }) != v1alpha1.ActionAllow {
			allow(own, cmd.line())
		}
	}
	for i := range f.script.perhaps {
		if cmd := &f.script.perhaps[i]; refused(c.judgePerhaps(t.names(), &facts{script: script{perhaps: []command{*cmd}}})) {
			allow(own, cmd.line())
		}
	}
	for i := range f.paths {
		p := &f.paths[i]
		if p.Clean == shell.Unknown {
			continue
		}
		for _, as := range append(slices.Clone(opened[p.Op]), t.names()...) {
			if f.shell && as == own {
				continue
			}
			if refused(c.onPath([]string{as}, p, f.root)) || as == own || p.redirect {
				allow(as, p.Clean)
				allow(as, p.Real)
			}
		}
		if !p.InWorkspace {
			allow(externalDirectory, p.Clean)
			allow(externalDirectory, p.Real)
		}
	}
	for _, u := range f.urls {
		allow(own, u.raw)
	}
	if len(entries) == 0 { // a file that it reaches without naming it
		allow("read", "*")
		allow("edit", "*")
	}
	for _, wide := range []string{own, "read", "edit", externalDirectory} {
		if c.appended(entries).judge(t, f) == v1alpha1.ActionAllow {
			return entries
		}
		allow(wide, "*")
	}
	return entries
}

// appended is the policy with entries appended to its list.
func (c *Compiled) appended(entries []v1alpha1.Permission) *Compiled {
	out := *c
	out.entries = slices.Clone(c.entries)
	for _, p := range entries {
		out.entries = append(out.entries, entry{permission: p.Permission, pattern: p.Pattern, action: p.Action})
	}
	return &out
}
