package plan

import (
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// Checks are what the agent checks changed files with. Their programs see what those of the
// agent's bash see, but cannot change anything of it: the files of the run and all mounts
// are read-only, there is no network, and of the variables only those that are no secrets.
func (p *Plan) Checks() []tool.Check {
	var like v1alpha1.ToolSpec
	for i := range p.Definitions {
		if d := &p.Definitions[i]; d.Shipped == "bash" {
			like = *d.Spec.DeepCopy()
		}
	}
	all := make([]tool.Check, 0, len(p.Agent.Spec.Diagnostics))
	for _, d := range p.Agent.Spec.Diagnostics {
		c := tool.Check{Diagnostic: d, Program: tool.Definition{Name: "diagnostics/" + d.Name}}
		c.Program.Command = slices.Concat(d.Command, d.Server)
		s := &c.Program.Spec
		s.WorkspaceAccess, s.Network.Mode, s.Isolation.Minimum = v1alpha1.AccessReadOnly, v1alpha1.NetworkNone, v1alpha1.IsolationSandbox
		for _, m := range like.Isolation.Mounts {
			s.Isolation.Mounts = append(s.Isolation.Mounts, v1alpha1.Mount{Path: m.Path, Access: v1alpha1.MountReadOnly})
		}
		s.Env = slices.DeleteFunc(slices.Clone(like.Env), func(v v1alpha1.EnvVar) bool { return v.Value == nil })
		s.Limits = like.Limits
		c.Reach = Reach(&c.Program)
		all = append(all, c)
	}
	return all
}

// Programs are the definitions of all whose programs are contained: those of the tools and
// of the checks.
func (p *Plan) Programs() []tool.Definition {
	return slices.Concat(p.Definitions, tool.Programs(p.Checks()))
}
