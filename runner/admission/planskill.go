package admission

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/schema"
	"agentctl.dev/agentctl/runner/steps"
	"agentctl.dev/agentctl/runner/tool/builtin"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// SkillName is what models and rules call a skill.
func SkillName(s *v1alpha1.Skill) string { return cmp.Or(s.Spec.CallName, s.Name) }

// plannedSkill is what the folder of a declared skill holds.
type plannedSkill struct {
	*skill.Skill
	// command runs its program, with arguments of this schema; nil where it has none, or
	// must not run it.
	command []string
	schema  []byte
	// dir is the folder on this host, and folder what it is called; "" for the root of an
	// image, which has no name.
	dir, folder string
}

// scriptError is an error of the program of a skill.
type scriptError struct{ error }

// readSkill reads the folder of a declared skill.
func (c *Catalog) readSkill(d *manifest.Document, s *v1alpha1.Skill) (*plannedSkill, error) {
	k := &plannedSkill{}
	var err error
	if k.dir, k.folder, err = c.skillDir(d, s); err != nil {
		return nil, err
	}
	return k, k.read(s)
}

// read reads the folder.
func (k *plannedSkill) read(s *v1alpha1.Skill) error {
	f, err := skill.Open(k.dir)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if k.Skill, err = f.Skill(); err != nil || s.Spec.Mode == v1alpha1.SkillDirect {
		return err
	}
	script, err := f.Script()
	switch {
	case err != nil:
		return &scriptError{err}
	case script == "" && s.Spec.Mode == v1alpha1.SkillSandbox:
		return &scriptError{errors.New("it has no scripts/execute.*")}
	case script == "":
		return nil
	}
	k.command, k.schema = skill.Command(k.dir, script), []byte(`{"type":"object"}`)
	if text, found, err := f.Optional(skill.Schema); err != nil {
		return &scriptError{fmt.Errorf("%s: %w", skill.Schema, err)}
	} else if found {
		k.schema = []byte(text)
	}
	if _, err := schema.Compile(k.schema); err != nil {
		return &scriptError{fmt.Errorf("%s: %w", skill.Schema, err)}
	}
	return nil
}

// planSkills reads the skills that the agent names, and offers the tool that loads them,
// unless the agent lists it itself. The script of a skill becomes a tool.
func (c *Catalog) planSkills(p *Plan) error {
	for _, ref := range p.Agent.Spec.Skills {
		e, ok := c.Skills[ref.Name]
		if !ok {
			return missing(v1alpha1.KindSkill, ref.Name, names(c.Skills))
		}
		if err := c.planSkill(p, e); err != nil {
			return fmt.Errorf("skill %q: %w", ref.Name, err)
		}
	}
	if len(p.Skills)+len(p.Agent.Spec.SkillFolders) == 0 ||
		slices.ContainsFunc(p.Tools, func(t PlannedTool) bool { return builtin.Named(&t.Tool.Spec.Source) == builtin.Skill }) {
		return nil
	}
	t, err := shipped(builtin.Skill)
	if err != nil {
		return err
	}
	materialise(t)
	p.Tools = append(p.Tools, PlannedTool{Tool: t})
	return nil
}

func (c *Catalog) planSkill(p *Plan, e Entry[v1alpha1.Skill]) error {
	spec := &e.Object.Spec
	text := ""
	if spec.Plan != nil {
		text = steps.Describe(spec.Plan)
	}
	if spec.Dir == "" && spec.Image == "" {
		p.declare(e.Doc)
		p.Skills = append(p.Skills, skill.Entry{Name: SkillName(e.Object), Description: skill.Brief(spec.Description), Plan: text})
		return nil
	}
	k, err := c.readSkill(e.Doc, e.Object)
	if err != nil {
		return err
	}
	p.declare(e.Doc)
	planned := skill.Entry{
		Name: SkillName(e.Object), Description: skill.Brief(cmp.Or(spec.Description, k.Description)), Dir: k.dir, Digest: k.Digest, Plan: text,
	}
	if spec.Image != "" {
		planned.Image, planned.Folder = absoluteImage(e.Doc.Dir, spec.Image), spec.Dir
	}
	if k.command != nil {
		planned.Tool = planned.Name
		t, err := scriptTool(e.Object, &planned, k)
		if err != nil {
			return err
		}
		p.Tools = append(p.Tools, PlannedTool{Tool: t})
	}
	p.Skills = append(p.Skills, planned)
	return nil
}

// scriptTool is the tool that runs the program of a skill: in a sandbox, without network,
// which shows its folder and the workspace read-only.
func scriptTool(s *v1alpha1.Skill, e *skill.Entry, k *plannedSkill) (*v1alpha1.Tool, error) {
	nameless, err := anyShipped()
	if err != nil {
		return nil, err
	}
	t := nameless.DeepCopy()
	t.ObjectMeta = *s.ObjectMeta.DeepCopy()
	t.Spec.CallName, t.Spec.Description = e.Name, e.Description
	t.Spec.Parameters = &v1alpha1.JSON{Raw: k.schema}
	t.Spec.Effects = []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectExecute}
	t.Spec.Category, t.Spec.WorkspaceAccess = v1alpha1.CategoryExecute, v1alpha1.AccessReadOnly
	t.Spec.Source = builtin.Command(k.command)
	t.Spec.Network = v1alpha1.Network{Mode: v1alpha1.NetworkNone}
	t.Spec.Isolation.Mounts = []v1alpha1.Mount{{Path: e.Dir, Access: v1alpha1.MountReadOnly}}
	materialise(t)
	return t, nil
}

// scriptTools are the programs of skills, which rules may speak of.
func (c *Catalog) scriptTools() (all []*v1alpha1.Tool) {
	for _, name := range names(c.Skills) {
		e := c.Skills[name]
		if spec := &e.Object.Spec; spec.Image == "" && (spec.Dir == "" || !filepath.IsAbs(absolute(e.Doc.Dir, spec.Dir))) {
			continue
		}
		k, err := c.readSkill(e.Doc, e.Object)
		if err != nil || k.command == nil {
			continue // what is wrong is reported with the skill
		}
		if t, err := scriptTool(e.Object, &skill.Entry{Name: SkillName(e.Object), Dir: k.dir}, k); err == nil {
			all = append(all, t)
		}
	}
	return all
}
