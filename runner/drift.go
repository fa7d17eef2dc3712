package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// present is the plan with the agent, the tools and the limits that manifests
// have today. The models stay the recorded ones: their answers are known; and so
// do the decisions, for the files they were judged by are not there.
func (v *relived) present(ctx context.Context, o *ReplayOptions) (*relived, []string, error) {
	_, catalog, found := admission.Read(ctx, o.Paths, o.Stdin, admission.Options{Tools: sources.All()})
	if found.HasErrors() {
		return nil, nil, &InvalidError{found}
	}
	choice := admission.ResolveOptions{Agent: o.Agent}
	if _, ok := catalog.Agents[v.Agent.Name]; ok && choice.Agent == "" {
		choice.Agent = v.Agent.Name
	}
	resolved, err := catalog.Resolve(choice)
	if err != nil {
		return nil, nil, &reason.UsageError{Err: err}
	}
	var notes []string
	if was, is := v.Agent.Name, resolved.Agent.Name; was != is {
		notes = append(notes, fmt.Sprintf("the agent is %s, the recorded one was %s", is, was))
	}
	if !sameJSON(v.record.Policies, resolved.Policies) {
		notes = append(notes, "the policies differ from the recorded ones; the recorded decisions stay")
	}
	if !sameJSON(v.Model, resolved.Model) {
		notes = append(notes, "the model differs from the recorded one; the recorded answers stay")
	}
	notes = append(notes, v.judged(resolved)...)
	p := *v.plan
	p.Plan = &admission.Plan{
		Agent: resolved.Agent, Tools: resolved.Tools, Policies: resolved.Policies, Limits: resolved.Limits,
		Model: v.Model, Fallbacks: v.Fallbacks, Summarizer: v.Summarizer,
	}
	if p.tools, err = define(resolved); err != nil {
		return nil, nil, &reason.UsageError{Err: err}
	}
	for i := range p.tools {
		d := &p.tools[i]
		was, known := v.specs[d.Name]
		switch {
		case len(d.Parameters) > 0:
		case !known:
			return nil, nil, reason.Usagef("tool %q: only its plugin knows what it takes, and a replay starts none", d.Name).WithHint("write spec.parameters of the Tool")
		default:
			d.Parameters = was.Parameters
			if d.Description == "" {
				d.Description = was.Description
			}
		}
	}
	if p.instructions, err = prompt.Fill(p.Agent.Spec.Instructions, p.inputs); err != nil {
		return nil, nil, reason.Usagef("agent %q: spec.instructions: %w", p.Agent.Name, err)
	}
	now := *v
	now.session = &session{plan: &p, opts: v.opts}
	return &now, notes, nil
}

// judged names the tools that are declared otherwise in what only decisions and
// results depend on, which stay the recorded ones.
func (v *relived) judged(now *admission.Plan) (notes []string) {
	for _, t := range now.Tools {
		i := slices.IndexFunc(v.Tools, func(was admission.PlannedTool) bool { return was.Tool.Name == t.Tool.Name })
		if i < 0 {
			continue
		}
		was, is := v.Tools[i].Tool.Spec.DeepCopy(), t.Tool.Spec.DeepCopy()
		for _, s := range []*v1alpha1.ToolSpec{was, is} {
			s.Description, s.Parameters = "", nil // the model is told of these: a difference there is a drift
		}
		if !sameJSON(was, is) {
			notes = append(notes, "tool "+t.CallName()+" is declared otherwise than the recorded one; its recorded decisions and results stay")
		}
	}
	return notes
}

// drift lists what the model would be told otherwise than the recorded one was.
func (v *relived) drift(now *relived) (all []replay.Drift) {
	add := func(what, was, is string) {
		if was != is {
			all = append(all, replay.Drift{What: what, Recorded: was, Now: is})
		}
	}
	was, err := prompt.Fill(v.Agent.Spec.Instructions, v.inputs)
	if err != nil {
		was = v.Agent.Spec.Instructions
	}
	was, is := strings.TrimSpace(was), strings.TrimSpace(now.instructions)
	add("the instructions differ", fmt.Sprintf("%q", was), fmt.Sprintf("%q", is))
	// They stand first in the system prompt; the rest of it is the recorded one's.
	if rest, ok := strings.CutPrefix(v.system, was); ok && was != is {
		now.system = is + rest
	}
	before, after := v.offered().Tools, now.offered().Tools
	for _, t := range after {
		i := slices.IndexFunc(before, nameIs(t.Name))
		if i < 0 {
			add("tool "+t.Name+" is new", "nothing", fmt.Sprintf("%q", t.Description))
			continue
		}
		add("the description of tool "+t.Name+" differs", fmt.Sprintf("%q", before[i].Description), fmt.Sprintf("%q", t.Description))
		add("the parameters of tool "+t.Name+" differ", canonical(before[i].Parameters), canonical(t.Parameters))
	}
	for _, t := range before {
		if !slices.ContainsFunc(after, nameIs(t.Name)) {
			add("tool "+t.Name+" is gone", fmt.Sprintf("%q", t.Description), "nothing")
		}
	}
	add("the output schema differs", canonical(v.outputSchema()), canonical(now.outputSchema()))
	return all
}

// canonical writes a schema in one way only; one that is none stays as it is.
func canonical(schema json.RawMessage) string {
	if len(schema) == 0 {
		return "nothing"
	}
	if b, err := tool.Canonical(schema); err == nil {
		return string(b)
	}
	return string(schema)
}

func nameIs(name string) func(message.ToolSpec) bool {
	return func(t message.ToolSpec) bool { return t.Name == name }
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
