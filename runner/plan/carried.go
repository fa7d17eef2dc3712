package plan

import (
	"fmt"

	"agentctl.dev/agentctl/api/reason"
)

// carries refuses what the plan of a skill would not read.
func (o *Options) carries(skill string) error {
	switch {
	case o.Served:
		return reason.Usagef("clients make the calls of this run: it cannot carry out the plan of skill %q as well", skill)
	case o.Prompt != "" || o.Command != "":
		return reason.Usagef("skill %q: its plan reads no prompt", skill).WithHint("leave -p out; data for a plan are --input key=value")
	case o.Model != "":
		return reason.Usagef("skill %q: its plan asks no model", skill).WithHint("leave --model out")
	case len(o.Attach) > 0:
		return reason.Usagef("skill %q: its plan is shown no files", skill).WithHint("leave --attach out: a step reads files with a tool")
	}
	return nil
}

// carriedPrompt begins a run that carries out the plan of a skill.
func (p *Plan) carriedPrompt() string {
	return fmt.Sprintf("Carry out the plan of skill %s.", p.Carried.Skill)
}

// modelless reports whether something other than a model makes the calls.
func (p *Plan) modelless() bool { return p.Served || p.Carried != nil }
