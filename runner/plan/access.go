package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
)

// Access is what the policies say about a call.
type Access struct {
	// Decision is allow, ask, deny or redact.
	Decision message.Action `json:"decision"`
	// Rule that decided and its Policy, which is "" for a default that no policy
	// sets. A rule may also be "permissions" or "default".
	Rule   string `json:"rule"`
	Policy string `json:"policy"`
	// File and Line of the rule; "" and 0 for a rule that is in no file.
	File string `json:"file"`
	Line int    `json:"line"`
	// Reason for people.
	Reason string `json:"reason"`
	// Change is what would have to be otherwise for the call to be allowed, all of
	// it; empty for an allowed call.
	Change []Blocker `json:"change"`

	Agent string `json:"agent"`
	Tool  string `json:"tool"`
	// Risk of the tool, and what is known about the call.
	Risk     string          `json:"risk"`
	Facts    json.RawMessage `json:"facts,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	// Reaches are the agents that the call can start, itself or through others.
	Reaches []Reached `json:"reaches,omitempty"`
}

// Blocker is one thing that would have to be otherwise.
type Blocker struct {
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule"`
	Policy   string         `json:"policy"`
	File     string         `json:"file"`
	Line     int            `json:"line"`
	// Text is what to do.
	Text string `json:"text"`
}

// Judge judges a call as a run would, without a run: nothing is started, asked or
// written. Only Paths, Stdin, Agent and Workspace of the options count. Its errors are a
// *manifest.InvalidError or a *reason.UsageError.
func Judge(ctx context.Context, o Options, tool string, args json.RawMessage) (*Access, error) {
	p, catalog, err := forAccess(ctx, o)
	if err != nil {
		return nil, err
	}
	j := &judgement{Plan: p, catalog: catalog, call: message.ToolCall{ID: "call", Tool: tool, Args: args, Again: true}}
	if err := j.check(); err != nil {
		return nil, err
	}
	about := p.StandingContext()
	if t, ok := policy.Named(about.Tools, tool); ok && j.chosen(&t) {
		about.Tools = append(about.Tools, t)
	}
	j.engine = policy.NewEngine(p.Rules, about)
	return j.access(ctx)
}

// judgement is a call that is judged by a plan.
type judgement struct {
	*Plan
	catalog *admission.Catalog
	call    message.ToolCall
	engine  *policy.Engine
}

// chosen reports whether the agent selects a function of a Tool that provides several. Its
// program is not asked whether the function exists.
func (j *judgement) chosen(t *policy.Tool) bool {
	at := slices.IndexFunc(j.Definitions, func(d tool.Definition) bool { return d.Name == t.Of && d.Select != nil })
	return at >= 0 && j.Definitions[at].Select.Takes(strings.TrimPrefix(t.Name, t.Of+"_"))
}

// check holds the call against the tool's schema, as a run does before it is judged.
func (j *judgement) check() error {
	if len(j.call.Args) == 0 {
		j.call.Args = json.RawMessage("{}")
	}
	if !json.Valid(j.call.Args) {
		return reason.Usagef("the arguments are no JSON: %s", clipped(string(j.call.Args))).WithHint(`write an object, for example --args '{"path": "README.md"}'`)
	}
	at := slices.IndexFunc(j.Definitions, func(d tool.Definition) bool { return d.Name == j.call.Tool })
	if at < 0 || len(j.Definitions[at].Parameters) == 0 {
		return nil
	}
	schema, err := tool.NewSchema(j.Definitions[at].Parameters)
	if err != nil {
		return fmt.Errorf("tool %q: %w", j.call.Tool, err)
	}
	args, err := schema.Check(string(j.call.Args))
	if err != nil {
		return reason.Usagef("no run would judge this call of %s: %w", j.call.Tool, err)
	}
	j.call.Args = args
	return nil
}

func clipped(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

func (j *judgement) access(ctx context.Context) (*Access, error) {
	d, err := j.engine.Decide(ctx, j.call)
	if err != nil {
		return nil, err
	}
	at := j.origin(ctx, d)
	a := &Access{
		Decision: d.Action, Rule: at.Rule, Policy: at.Policy, File: at.File, Line: at.Line, Reason: d.Message, Change: []Blocker{},
		Agent: j.Agent.Name, Tool: j.call.Tool, Risk: d.Risk, Facts: d.Facts, Warnings: d.Warnings,
	}
	if a.Reason == "" {
		a.Reason = j.why(at, d)
	}
	if d.Action != message.Deny {
		a.Reaches = j.reaches()
	}
	if d.Rule == "default/unknown-tool" {
		a.Change = append(a.Change, Blocker{Decision: d.Action, Rule: at.Rule, Text: j.unknown()})
	}
	for _, d := range j.engine.Blockers(ctx, j.call) {
		c := j.origin(ctx, d)
		a.Change = append(a.Change, Blocker{Decision: d.Action, Rule: c.Rule, Policy: c.Policy, File: c.File, Line: c.Line, Text: j.advice(ctx, c, d)})
	}
	return a, nil
}

// origin is where a decision comes from, in the manifests.
type origin struct {
	policy.Origin
	manifest.Position
}

func (p origin) String() string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", p.File, p.Line)
}

func (j *judgement) origin(ctx context.Context, d message.Decision) origin {
	p := origin{Origin: j.engine.Origin(ctx, j.AllRules(), j.call, d)}
	if e, ok := j.catalog.Policies[p.Policy]; ok && p.Path != "" {
		p.Position = e.Doc.Locate(p.Path)
	} else if p.Path != "" {
		p.File, p.Line = j.Locate(p.Origin)
	}
	return p
}

// rules are those of a policy of the manifests, or of the repository.
func (j *judgement) rules(name string) []v1alpha1.Rule {
	if e, ok := j.catalog.Policies[name]; ok {
		return e.Object.Spec.Rules
	}
	for _, c := range j.Ceilings {
		for _, pol := range c.Policies {
			if pol.Name == name {
				return pol.Spec.Rules
			}
		}
	}
	return nil
}

func (j *judgement) why(at origin, d message.Decision) string {
	if at.Policy == "" {
		return fmt.Sprintf("no rule speaks of this call, and its risk is %s", d.Risk)
	}
	return fmt.Sprintf("%s of policy %s says %s", noun(at.Rule), at.Policy, d.Action)
}

func noun(rule string) string {
	switch rule {
	case "permissions":
		return "the permission list"
	case "default":
		return "the default"
	}
	return "rule " + rule
}

// unknown returns what an agent without the tool would need.
func (j *judgement) unknown() string {
	text := fmt.Sprintf("list %s in spec.tools of agent %s", j.call.Tool, j.Agent.Name)
	names := j.CallNames()
	if near := reason.Nearest(j.call.Tool, names); near != "" {
		return text + ", or did you mean " + near + "?"
	}
	if len(names) == 0 {
		return text + ": it has none"
	}
	return text + ": it has " + strings.Join(names, ", ")
}

// advice returns what would have to change about one decision.
func (j *judgement) advice(ctx context.Context, at origin, d message.Decision) string {
	if d.Rule == "default/error" {
		return "write arguments that can be judged: " + d.Message
	}
	r := j.engine.Remedy(ctx, j.call, d)
	switch {
	case r.Rule != nil:
		text := fmt.Sprintf("%s%s: a rule of a policy must allow it: %s", noun(at.Rule), at, written(r.Rule))
		if d.Action == message.Ask {
			text += "; or a person approves the call when it is made"
		}
		return text
	case at.Rule == "permissions":
		text := fmt.Sprintf("the permissions of policy %s%s must allow it: the last entry that matches says %s", at.Policy, at, d.Action)
		var entries []string
		for _, e := range r.Entries {
			entries = append(entries, fmt.Sprintf("{permission: %s, pattern: %s, action: allow}", yamlText(e.Permission), yamlText(e.Pattern)))
		}
		if len(entries) > 0 {
			text += "; append " + strings.Join(entries, ", ")
		}
		return text
	}
	text := fmt.Sprintf("rule %s of policy %s%s must not hold", at.Rule, at.Policy, at)
	rules := j.rules(at.Policy)
	if n := slices.IndexFunc(rules, func(r v1alpha1.Rule) bool { return r.Name == at.Rule }); n >= 0 {
		if when := rules[n].When; when != "" {
			text += ": when: " + strings.TrimSpace(when)
		} else {
			text += ": it has no condition, and holds for all that its match selects"
		}
	}
	switch {
	case r.Except != "":
		text += "; require also " + r.Except
	case r.Omit:
		text += "; leave it out, or write the call so that the files that it reads are known"
	}
	return text
}

// written is a rule as a manifest has it.
func written(r *v1alpha1.Rule) string {
	match := "tools: [" + yamlText(r.Match.Tools[0]) + "]"
	if len(r.Match.Risks) > 0 {
		match += ", risks: [R3]"
	}
	when := ""
	if r.When != "" {
		when = "when: " + yamlText(r.When) + ", "
	}
	return fmt.Sprintf("{name: %s, match: {%s}, %saction: allow}", r.Name, match, when)
}

// yamlText is a text as YAML has it between braces.
func yamlText(s string) string {
	if plainText().MatchString(s) && !slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}

var plainText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`) })
