package plan

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
)

// PolicyContext is what rules know about every run of the plan on a host that isolates
// tools at a level. The tools are those of the plan, as their programs describe them.
func (p *Plan) PolicyContext(tools []tool.Definition, host v1alpha1.IsolationLevel) policy.Context {
	c := policy.Context{
		Agent:     policy.Agent{Name: p.Agent.Name, Namespace: p.Agent.Namespace, Labels: p.Agent.Labels, Mode: string(p.Agent.Spec.Mode), Depth: len(p.Parents), Parents: p.Parents},
		Workspace: policy.Workspace{Source: p.Workspace.Source},
		Now:       time.Now,
		Ceilings:  p.CompiledCeilings(),
	}
	if p.Run != nil {
		c.Run.Labels = p.Run.Labels
	}
	for i := range tools {
		c.Tools = append(c.Tools, policyTool(&tools[i], host, p.Workspace.Strategy))
	}
	return c
}

// judged reports whether a policy of the plan could refuse a file.
func (p *Plan) judged() bool { return len(p.Rules)+len(p.Ceilings) > 0 }

// StandingContext is the context of a call before the run has begun.
func (p *Plan) StandingContext() policy.Context {
	host := sandbox.New(sandbox.Options{Outer: sandbox.OuterIsolation(), State: sandbox.ScratchDir()}).Level()
	c := p.PolicyContext(p.Definitions, host)
	if c.Workspace.Root = p.Workspace.Source; c.Workspace.Root == "" {
		c.Workspace.Root = filepath.Join("/", "workspace") // the run would create an empty one
	}
	c.Budget = func() policy.Budget { return policy.Budget{} }
	c.Run.User = LocalUser()
	if p.Run != nil {
		c.Run.Name = p.Run.Name
	}
	return c
}

// policyTool is what a policy knows about a tool.
func policyTool(d *tool.Definition, host v1alpha1.IsolationLevel, files v1alpha1.WorkspaceStrategy) policy.Tool {
	return policy.Tool{
		Name: d.Name, Source: d.Kind, Builtin: d.Shipped, Risk: d.Spec.Risk, Effects: d.Spec.Effects, Category: d.Spec.Category,
		Schema: ruleSchema(d), Digest: d.Digest(), Annotations: d.Annotations, Several: d.Select != nil, Of: d.Of, Server: d.Server,
		Binds:        binds(d),
		Contained:    Level(d, host) != v1alpha1.IsolationNone && Reach(d) == "" && files == v1alpha1.StrategyCopy,
		OwnTemporary: Level(d, host) != v1alpha1.IsolationNone && !mountsTemporary(d),
	}
}

// mountsTemporary reports whether a mount of the tool shows a file of the host in /tmp, or
// all of it.
func mountsTemporary(d *tool.Definition) bool {
	return slices.ContainsFunc(d.Spec.Isolation.Mounts, func(m v1alpha1.Mount) bool {
		p := filepath.Clean(m.Path)
		return p == "/" || p == "/tmp" || strings.HasPrefix(p, "/tmp/")
	})
}

// ruleSchema is the schema by which rules read arguments. Rules are compiled before a
// program can describe its functions, so they read the arguments of those without types.
func ruleSchema(d *tool.Definition) json.RawMessage {
	if d.Select != nil || d.Of != "" {
		return nil
	}
	return d.Parameters
}

// Reaching returns a warning for each tool that is judged as if it were not isolated,
// because of a mount: a mount is easily added, and what follows from it easily missed.
func Reaching(tools []tool.Definition, host v1alpha1.IsolationLevel) (warnings []string) {
	for i := range tools {
		d := &tools[i]
		if len(d.Spec.Isolation.Mounts) == 0 || Level(d, host) == v1alpha1.IsolationNone {
			continue
		}
		if why := Reach(d); why != "" && (i == 0 || d.Of == "" || d.Of != tools[i-1].Of) {
			warnings = append(warnings, "calls of "+d.Program()+" are judged as if nothing held it: "+why)
		}
	}
	return warnings
}

// InputValues are the inputs as rules read them.
func (p *Plan) InputValues() (map[string]any, error) {
	values := map[string]any{}
	for name, raw := range p.Inputs {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
		values[name] = v
	}
	return values, nil
}

// Used is how much of its limits a run has used.
type Used struct {
	Tokens, Steps int64
	Time          time.Duration
	Cost          message.Cost
}

// UsedBy is what the newest turn of a run has used at a time.
func UsedBy(v *view.Run, at time.Time) Used {
	t := v.Turn()
	return Used{Tokens: t.Tokens.Total(), Steps: int64(v.TurnSteps()), Time: at.Sub(t.StartTime), Cost: t.Cost}
}

// Budget compares what a run has used with the limits of the plan.
func (p *Plan) Budget(used Used) policy.Budget {
	return policy.Budget{
		Tokens:  policy.Use{Used: used.Tokens, Limit: p.Limits.MaxTokens},
		Steps:   policy.Use{Used: used.Steps, Limit: int64(p.Limits.MaxSteps)},
		Seconds: policy.Use{Used: int64(used.Time.Seconds()), Limit: int64(p.Deadline().Seconds())},
		Cost:    policy.Money{Used: used.Cost.Dollars(), Limit: p.MaxCost().Dollars()},
	}
}

// Locate returns where a part of a policy is written; "" and 0 for what is in no file.
func (p *Plan) Locate(o policy.Origin) (file string, line int) {
	at, ok := p.Sources[admission.RuleKey(o.Policy, o.Path)]
	if !ok {
		return "", 0
	}
	// The position is file:line:col, and a file's name may contain colons.
	for range 2 {
		i := strings.LastIndexByte(at, ':')
		if i < 0 {
			return at, line
		}
		n, err := strconv.Atoi(at[i+1:])
		if err != nil {
			return at, line
		}
		at, line = at[:i], n
	}
	return at, line
}
