package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/workspace"
)

// place resolves which files the run works on.
func (p *Plan) place(o *Options) error {
	spec := v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyCopy}
	if p.Run != nil && p.Run.Spec.Workspace != nil {
		spec = *p.Run.Spec.Workspace
	}
	if o.InPlace {
		spec.Strategy = v1alpha1.StrategyInPlace
	}
	p.Workspace = workspace.Spec{Strategy: spec.Strategy, Exclude: spec.Exclude, Skip: []string{o.State}}
	if spec.SizeLimit != nil {
		p.Workspace.SizeLimit = spec.SizeLimit.Value()
	}
	if spec.GrowthLimit != nil {
		p.Workspace.GrowthLimit = spec.GrowthLimit.Value()
	}
	source := "."
	if spec.Source != nil && spec.Source.Path != "" {
		source = spec.Source.Path
	}
	if o.Workspace != "" {
		source = o.Workspace
	}
	if spec.Strategy == v1alpha1.StrategyEmpty {
		return nil
	}
	abs, err := filepath.Abs(source)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return reason.Usagef("workspace %s: %w", source, err).WithHint("name an existing folder with --workspace")
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return reason.Usagef("workspace %s is not a folder", source).WithHint("name an existing folder with --workspace")
	}
	p.Workspace.Source = abs
	return nil
}

// usable refuses files that nobody means: a run begun at home would copy it.
func (p *Plan) usable() error {
	if p.Workspace.Source == "" {
		return nil
	}
	if err := workspace.Usable(p.Workspace); err != nil {
		return reason.Usagef("%w", err).WithHint("name a project folder with --workspace")
	}
	return nil
}

// inWorkspace returns those of the documents' files that lie in the workspace, as paths
// in it: a tool must not rewrite the rules of its own run.
func (p *Plan) inWorkspace(docs []*manifest.Document) []string {
	var in []string
	for _, d := range docs {
		files := d.Files
		if len(files) == 0 {
			files = []string{filepath.Join(d.Dir, filepath.Base(d.File))}
		}
		for _, file := range files {
			file, err := filepath.EvalSymlinks(file)
			if err != nil {
				continue // standard input
			}
			if name, ok := strings.CutPrefix(file, p.Workspace.Source+"/"); ok && p.Workspace.Source != "" && !slices.Contains(in, name) {
				in = append(in, name)
			}
		}
	}
	return in
}
