package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/tool"
)

// Offer is what a model is sent before the conversation.
type Offer struct {
	Instructions string
	Tools        []message.ToolSpec
	Output       json.RawMessage
}

// Difference is one thing that a model is sent differently.
type Difference struct{ What, Was, Is string }

// Diff lists how two offers differ.
func Diff(was, is Offer) (all []Difference) {
	add := func(what, was, is string) {
		if was != is {
			all = append(all, Difference{what, was, is})
		}
	}
	add("the instructions differ", fmt.Sprintf("%q", strings.TrimSpace(was.Instructions)), fmt.Sprintf("%q", strings.TrimSpace(is.Instructions)))
	for _, t := range is.Tools {
		i := slices.IndexFunc(was.Tools, nameIs(t.Name))
		if i < 0 {
			add("tool "+t.Name+" is new", "nothing", fmt.Sprintf("%q", t.Description))
			continue
		}
		add("the description of tool "+t.Name+" differs", fmt.Sprintf("%q", was.Tools[i].Description), fmt.Sprintf("%q", t.Description))
		add("the parameters of tool "+t.Name+" differ", canonical(was.Tools[i].Parameters), canonical(t.Parameters))
	}
	for _, t := range was.Tools {
		if !slices.ContainsFunc(is.Tools, nameIs(t.Name)) {
			add("tool "+t.Name+" is gone", fmt.Sprintf("%q", t.Description), "nothing")
		}
	}
	add("the output schema differs", canonical(was.Output), canonical(is.Output))
	return all
}

// Redeclared notes what differs in resolved manifests that only decisions, answers and
// results depend on, which stay the recorded ones in a replay.
func (p *Plan) Redeclared(now *admission.Plan) (notes []string) {
	if was, is := p.Agent.Name, now.Agent.Name; was != is {
		notes = append(notes, fmt.Sprintf("the agent is %s, the recorded one was %s", is, was))
	}
	if !sameJSON(p.Policies, now.Policies) {
		notes = append(notes, "the policies differ from the recorded ones; the recorded decisions stay")
	}
	if !sameJSON(p.Model, now.Model) {
		notes = append(notes, "the model differs from the recorded one; the recorded answers stay")
	}
	for _, t := range now.Tools {
		i := slices.IndexFunc(p.Tools, func(was admission.PlannedTool) bool { return was.Tool.Name == t.Tool.Name })
		if i < 0 {
			continue
		}
		was, is := p.Tools[i].Tool.Spec.DeepCopy(), t.Tool.Spec.DeepCopy()
		for _, s := range []*v1alpha1.ToolSpec{was, is} {
			s.Description, s.Parameters = "", nil // the model is sent these: Diff lists them
		}
		if !sameJSON(p.inAnyFolder(was), p.inAnyFolder(is)) {
			notes = append(notes, "tool "+t.CallName()+" is declared otherwise than the recorded one; its recorded decisions and results stay")
		}
	}
	return notes
}

// inAnyFolder is what a tool declares without the folder of its program: one beside its
// manifest has another in each clone.
func (p *Plan) inAnyFolder(s *v1alpha1.ToolSpec) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	facts, err := p.registries.Sources.Facts(s)
	if err != nil || len(facts.Command) == 0 || !filepath.IsAbs(facts.Command[0]) {
		return text
	}
	is, _ := json.Marshal(facts.Command[0]) // a string
	base, _ := json.Marshal(filepath.Base(facts.Command[0]))
	return bytes.Replace(text, is, base, 1)
}

// canonical writes a schema in one way only; an invalid one stays as it is.
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
