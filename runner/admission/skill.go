package admission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/skill"
)

func (a *admitter) skill(d *manifest.Document, s *v1alpha1.Skill) {
	a.skillName(d, s)
	a.skillFile(d, s)
	if s.Spec.Plan != nil {
		a.skillPlan(d, s.Spec.Plan)
	}
}

// skillName keeps the name of a shipped tool for that tool.
func (a *admitter) skillName(d *manifest.Document, s *v1alpha1.Skill) {
	name, at := SkillName(s), "spec.callName"
	if s.Spec.CallName == "" {
		at = "metadata.name"
	}
	switch _, taken := builtin.Lookup(name); {
	case taken:
		a.add(d.Errorf(at, "the call name %q belongs to a built-in tool: rules about it would judge a skill", name).With("choose another spec.callName"))
	case !skill.Callable(name):
		a.add(d.Errorf(at, "%q cannot be the name by which a model calls the skill: 1 to 64 of A-Z a-z 0-9 _ -", clip(name)).With("write spec.callName"))
	}
}

// skillFile checks the folder of a skill, where its manifest is a file. An object
// of a control plane is checked where it is kept, and so is a path of its host.
func (a *admitter) skillFile(d *manifest.Document, s *v1alpha1.Skill) {
	at, what := "spec.dir", s.Spec.Dir
	if s.Spec.Image != "" {
		at, what = "spec.image", s.Spec.Image
		if a.opts.Images == nil || d.Faulty(at) {
			return
		}
	} else if s.Spec.Dir == "" || d.Dir == "" || a.opts.Elsewhere && filepath.IsAbs(s.Spec.Dir) {
		return
	}
	k, err := a.catalog.readSkill(d, s)
	if wrong, ok := errors.AsType[*scriptError](err); ok {
		a.add(d.Errorf("spec.mode", "%s: %v", clip(what), wrong).With("a skill of mode Sandbox has one program, scripts/execute.*; Direct runs none"))
		return
	}
	if wrong, ok := errors.AsType[*reason.Error](err); ok { // a run that needs the skill does not begin
		a.add(d.Warnf(at, "%v", wrong.Err).With(wrong.Hint))
		return
	}
	if err != nil {
		a.add(d.Errorf(at, "%s: %v", clip(what), err).With("a skill is a folder with a file " + skill.File))
		return
	}
	problems := k.Problems
	if base := k.folder; base != "" && k.Name != "" && k.Name != base {
		problems = append(problems, fmt.Sprintf("its name is %q, and its folder is called %q", clip(k.Name), clip(base)))
	}
	if a.opts.Strict {
		problems = append(problems, k.Departures()...)
	}
	for _, p := range problems {
		if s.Spec.Description != "" && k.Description == "" && !a.opts.Strict {
			continue // the manifest has what the file lacks
		}
		a.add(d.Warnf(at, "%s: %s: %s", clip(what), skill.File, p).As(manifest.RuleSkill))
	}
}

// agentSkills resolves the skills of an agent, and reports a skill with the
// call name of something else.
func (a *admitter) agentSkills(d *manifest.Document, ag *v1alpha1.Agent) {
	calls := map[string]string{}
	for _, t := range ag.Spec.Tools {
		call := t.Name
		if e, ok := a.catalog.Tools[t.Name]; ok {
			call = CallName(e.Object)
		}
		calls[call] = fmt.Sprintf("tool %q", t.Name)
	}
	known := names(a.catalog.Skills)
	for i, ref := range ag.Spec.Skills {
		at := manifest.Index("spec.skills", i) + ".name"
		if !a.reference(d, at, v1alpha1.KindSkill, ref.Name, known) || ref.Name == "" {
			continue
		}
		call := ref.Name
		if e, ok := a.catalog.Skills[ref.Name]; ok {
			call = SkillName(e.Object)
			a.carries(d, at, ag, &e)
		}
		what := fmt.Sprintf("skill %q", ref.Name)
		if other, taken := calls[call]; taken && other != what {
			a.add(d.Errorf(at, "%s and %s have one call name, %q", other, what, call).With("give one of them another spec.callName"))
		}
		calls[call] = what
	}
	for i, folder := range ag.Spec.SkillFolders {
		if !filepath.IsLocal(folder) {
			a.add(d.Errorf(manifest.Index("spec.skillFolders", i), "%q is no folder of the workspace", clip(folder)).With("write a path in it, such as .agents/skills"))
		}
	}
	a.workspaceSkills(d, ag)
	lists := slices.ContainsFunc(ag.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == builtin.Skill })
	if _, declared := a.catalog.Tools[builtin.Skill]; lists && !declared && len(ag.Spec.Skills)+len(ag.Spec.SkillFolders) == 0 {
		a.add(d.Warnf("spec.tools", "the tool skill loads skills, and the agent has none").With("name them in spec.skills, or folders with some in spec.skillFolders"))
	}
}
