package policytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/policy"
)

// workspaceWord is replaced by the folder of the workspace in a case.
const workspaceWord = "${workspace}"

// noon is when every case happens: rules that read now decide the same each time.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// bench judges the cases of one policy.
type bench struct {
	opts    *Options
	subject *Subject
	dirs    *folders
	judges  *judges
	trials  []*trial
}

// trial is a case that is ready to be judged.
type trial struct {
	*Case
	call   message.ToolCall
	result *message.ToolResult
	about  policy.Context
	// key is the same for trials that one engine can judge.
	key string
	// problem is why the case tests nothing.
	problem string
	// trace is what the rules say about it.
	trace policy.RuleTrace
}

func (b *bench) prepare(c *Case) (*trial, error) {
	root, err := b.dirs.with(c.Links)
	if err != nil {
		return nil, err
	}
	t := &trial{Case: c, call: message.ToolCall{ID: "case", Tool: c.Call.Tool, Args: arguments(c, root), Again: true}}
	t.about = policy.Context{
		Agent: policy.Agent{Name: c.Agent}, Workspace: policy.Workspace{Root: root},
		Now: func() time.Time { return noon }, Budget: func() policy.Budget { return policy.Budget{} },
	}
	if a, ok := b.opts.Agents[c.Agent]; ok {
		t.about.Agent = a
	}
	if s := c.Session; s != nil {
		t.about.Denials, t.about.Calls = int(s.Denials), map[string]int{}
		for tool, n := range s.Calls {
			t.about.Calls[tool] = int(n)
		}
	}
	if r := c.Result; r != nil {
		code := int(r.ExitCode)
		t.result = &message.ToolResult{Text: r.Text, Output: r.Text, Code: message.ErrorCode(r.Error), ExitCode: &code}
	}
	t.key = fmt.Sprintf("%q %q %q %v %d", c.Call.Tool, c.Agent, root, t.about.Calls, t.about.Denials)
	called, ok := policy.Named(b.opts.Tools, c.Call.Tool)
	if !ok {
		t.problem = b.unknownTool(c.Call.Tool)
		return t, nil
	}
	t.about.Tools = []policy.Tool{called}
	if b.opts.Check != nil {
		if err := b.opts.Check(t.call.Tool, t.call.Args); err != nil {
			t.problem = "no run would judge this call: " + err.Error()
		}
	}
	return t, nil
}

func (b *bench) unknownTool(name string) string {
	var known []string
	for i := range b.opts.Tools {
		known = append(known, b.opts.Tools[i].Name)
	}
	text := fmt.Sprintf("there is no tool %s", name)
	if near := reason.Nearest(name, known); near != "" {
		return text + ", did you mean " + near + "?"
	}
	return text + ": give its manifest, too"
}

// arguments are those of a case, with the workspace's folder filled in.
func arguments(c *Case, root string) json.RawMessage {
	if c.Call.Args == nil || len(c.Call.Args.Raw) == 0 {
		return json.RawMessage("{}")
	}
	quoted, err := json.Marshal(root)
	if err != nil { // a string has a JSON form
		return c.Call.Args.Raw
	}
	return bytes.ReplaceAll(c.Call.Args.Raw, []byte(workspaceWord), bytes.Trim(quoted, `"`))
}

// judges are the engines of one policy, by the key of the trials they judge.
type judges struct {
	policy *policy.Compiled
	mu     sync.Mutex
	by     map[string]*policy.Engine
}

func newJudges(p *policy.Compiled) *judges {
	return &judges{policy: p, by: map[string]*policy.Engine{}}
}

func (j *judges) of(t *trial) *policy.Engine {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.by[t.key]
	if !ok {
		e = policy.NewEngine([]*policy.Compiled{j.policy}, t.about)
		j.by[t.key] = e
	}
	return e
}

// verdict is what a policy decides about a trial.
func (b *bench) verdict(ctx context.Context, j *judges, t *trial) Verdict {
	if t.result != nil {
		return b.review(ctx, j, t)
	}
	d, err := j.of(t).Decide(ctx, t.call)
	if err != nil {
		return Verdict{Action: v1alpha1.ActionDeny, Message: err.Error()}
	}
	return Verdict{Action: v1alpha1.Action(d.Action), Rule: d.Rule, Message: t.shown(d.Message)}
}

// review judges the result of a trial.
func (b *bench) review(ctx context.Context, j *judges, t *trial) Verdict {
	out, err := j.of(t).Review(ctx, t.call, t.result)
	if err != nil {
		v := Verdict{Action: v1alpha1.ActionDeny, Message: t.shown(err.Error())}
		if w, ok := errors.AsType[*policy.WithheldError](err); ok {
			v.Rule = w.Rule
			if w.Err == nil {
				v.Message = t.shown(w.Message)
			}
		}
		return v
	}
	if out.Text == t.result.Text && out.Output == t.result.Output {
		return Verdict{Action: v1alpha1.ActionAllow, Text: &out.Text}
	}
	v := Verdict{Action: v1alpha1.ActionRedact, Text: &out.Text}
	for _, a := range t.trace.Answers {
		r := &b.subject.Policy.Spec.Rules[a.Rule]
		if r.On == v1alpha1.OnResult && r.Action == v1alpha1.ActionRedact && a.Truth != expr.False {
			v.Rule = b.subject.Policy.Name + "/" + r.Name
			break
		}
	}
	return v
}

// shown is a text without the names of folders that are others each time.
func (t *trial) shown(text string) string {
	root := t.about.Workspace.Root
	return strings.NewReplacer(root, workspaceWord, filepath.Dir(root), workspaceWord+"/..").Replace(text)
}

// meets reports whether a verdict is the expected one.
func (t *trial) meets(v Verdict) bool {
	if v.Action != t.Expect || t.Message != "" && v.Message != t.Message && !strings.HasPrefix(v.Message, t.Message+" (") {
		return false
	}
	if t.Result != nil && t.Result.Want != nil && (v.Text == nil || *v.Text != *t.Result.Want) {
		return false
	}
	return t.Rule == "" || strings.HasSuffix(v.Rule, "/"+t.Rule) || t.Rule == "default" && strings.HasPrefix(v.Rule, "default/")
}

// result judges a trial by the policy as it is.
func (b *bench) result(ctx context.Context, t *trial) CaseResult {
	took := b.opts.stopwatch()
	r := CaseResult{
		Name: t.Name, Position: t.Position, Agent: t.Agent, Tool: t.call.Tool, Args: json.RawMessage(t.shown(string(t.call.Args))),
		Want: Verdict{Action: t.Expect, Rule: t.Rule, Message: t.Message}, Problem: t.problem,
	}
	if t.Result != nil {
		r.Want.Text = t.Result.Want
	}
	if t.problem == "" {
		trace, err := b.judges.policy.Trace(ctx, t.about, t.call, t.result)
		if err == nil { // otherwise the decision is a deny with a reason
			t.trace = trace
		}
		got := b.verdict(ctx, b.judges, t)
		r.Got, r.Pass = &got, t.meets(got)
		r.RulePosition = b.place(got.Rule)
	}
	r.DurationMicros = took().Microseconds()
	return r
}
