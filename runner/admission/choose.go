package admission

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// choose finds the agent or run to execute.
func (c *Catalog) choose(opts ResolveOptions) (Entry[v1alpha1.Agent], *Entry[v1alpha1.Run], error) {
	var none Entry[v1alpha1.Agent]
	run, err := c.chooseRun(opts)
	if err != nil {
		return none, nil, err
	}
	name := opts.Agent
	if run != nil {
		if name != "" && name != run.Object.Spec.AgentRef.Name {
			return none, nil, fmt.Errorf("run %q is of agent %q, not %q", run.Object.Name, run.Object.Spec.AgentRef.Name, name)
		}
		name = run.Object.Spec.AgentRef.Name
	}
	if name == "" {
		if name, err = c.onlyAgent(); err != nil {
			return none, nil, err
		}
	}
	agent, ok := c.Agents[name]
	switch {
	case !ok:
		return none, nil, missing(v1alpha1.KindAgent, name, names(c.Agents))
	case agent.Object.Spec.Mode == v1alpha1.ModeSubagent && !opts.Below:
		return none, nil, fmt.Errorf("agent %q has mode Subagent: only other agents start it", name)
	}
	return agent, run, nil
}

func (c *Catalog) chooseRun(opts ResolveOptions) (*Entry[v1alpha1.Run], error) {
	if opts.WithoutRun {
		return nil, nil //nolint:nilnil // as where there is none
	}
	if opts.Run != "" {
		r, ok := c.Runs[opts.Run]
		if !ok {
			return nil, missing(v1alpha1.KindRun, opts.Run, names(c.Runs))
		}
		return &r, nil
	}
	all := slices.Clone(c.unnamed)
	for _, n := range names(c.Runs) {
		all = append(all, c.Runs[n])
	}
	if opts.Agent != "" {
		all = slices.DeleteFunc(all, func(e Entry[v1alpha1.Run]) bool { return e.Object.Spec.AgentRef.Name != opts.Agent })
	}
	switch len(all) {
	case 0:
		return nil, nil //nolint:nilnil // no Run object is a valid answer
	case 1:
		return &all[0], nil
	}
	if opts.Agent != "" {
		return nil, fmt.Errorf("agent %q has %d runs: name one of %s", opts.Agent, len(all), strings.Join(names(c.Runs), ", "))
	}
	return nil, fmt.Errorf("the manifests hold %d runs: name one of %s", len(all), strings.Join(names(c.Runs), ", "))
}

func (c *Catalog) onlyAgent() (string, error) {
	var can []string
	for _, n := range names(c.Agents) {
		if c.Agents[n].Object.Spec.Mode != v1alpha1.ModeSubagent {
			can = append(can, n)
		}
	}
	switch len(can) {
	case 0:
		return "", fmt.Errorf("the manifests hold no Agent that a run can start")
	case 1:
		return can[0], nil
	}
	return "", fmt.Errorf("the manifests hold %d agents: name one with --agent: %s", len(can), strings.Join(can, ", "))
}

func (c *Catalog) chooseModel(name string, agent *v1alpha1.Agent) (Entry[v1alpha1.Model], error) {
	if name == "" {
		name = agent.Spec.ModelRef.Name
	}
	m, ok := c.Models[name]
	if !ok {
		return m, missing(v1alpha1.KindModel, name, names(c.Models))
	}
	return m, nil
}

func missing(kind, name string, known []string) error {
	hint := manifest.Suggest(name, known)
	if hint == "" {
		hint = listed(kind, known)
	}
	return fmt.Errorf("%s %q not found; %s", strings.ToLower(kind), name, hint)
}
