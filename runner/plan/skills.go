package plan

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// findSkills adds the skills that the workspace brings along, if the agent wants them. They
// are read from the source of the files: what a run changes in its copy is not loaded.
func (p *Plan) findSkills() {
	source := p.Workspace.Source
	if source == "" || len(p.Agent.Spec.SkillFolders)+len(p.Skills) == 0 {
		return
	}
	resolved := *p.Plan
	resolved.Skills = nil
	found, notes := skill.Find(source, p.Agent.Spec.SkillFolders)
	for _, e := range p.Skills { // a declared one may lie in the workspace as well, or around it
		if e.Dir == "" || e.Image != "" { // an image is kept beside the runs, where no workspace is
			resolved.Skills = append(resolved.Skills, e)
			continue
		}
		if err := e.Locate(source); err != nil {
			notes = append(notes, fmt.Sprintf("skill %s is left out: %s: %v", e.Name, e.Dir, err))
			continue
		}
		resolved.Skills = append(resolved.Skills, e)
	}
	for _, e := range found {
		if slices.ContainsFunc(resolved.Skills, func(d skill.Entry) bool { return d.Name == e.Name }) {
			if !slices.ContainsFunc(resolved.Skills, func(d skill.Entry) bool { return d.Dir == e.Dir }) {
				notes = append(notes, fmt.Sprintf("skill %s is left out: spec.skills has one of that name", e.Workspace))
			}
			continue
		}
		resolved.Skills = append(resolved.Skills, e)
	}
	p.Plan, p.Warnings = &resolved, append(p.Warnings, notes...)
}

// skillList is the list of skills for the system prompt: none where the agent cannot load
// any, and no skill of the workspace that it must not read.
func (p *Plan) skillList(ctx context.Context, engine *policy.Engine, leftOut func(file string, err error)) string {
	at := slices.IndexFunc(p.Definitions, func(d tool.Definition) bool { return d.Shipped == builtin.Skill })
	if at < 0 || len(p.Skills) == 0 || engine != nil && slices.Contains(engine.HiddenTools(), p.Definitions[at].Name) {
		return ""
	}
	var listed []skill.Entry
	for _, e := range p.Skills {
		if path := e.Path(skill.File); path != "" && engine != nil {
			if _, err := engine.Load(ctx, path, ""); err != nil {
				leftOut(path, err)
				continue
			}
		}
		listed = append(listed, e)
	}
	return skill.List(listed)
}
