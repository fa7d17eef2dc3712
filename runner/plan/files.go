package plan

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/workspace"
)

// Repository is a git repository that was cloned for the run.
type Repository struct {
	// Dir is the folder of the clone.
	Dir    string
	Clone  event.GitClone
	Notes  []string
	Secret secret.Value
	// Resolved is the reference to the secret; nil without one.
	Resolved *event.SecretResolved
}

// declared are the files that the manifests name.
func (p *Plan) declared() v1alpha1.WorkspaceSpec {
	if p.Run != nil && p.Run.Spec.Workspace != nil {
		return *p.Run.Spec.Workspace
	}
	return v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyCopy}
}

// repository is the declared git repository, if the run works on one.
func (p *Plan) repository(o *Options) *v1alpha1.GitSource {
	if s := p.declared().Source; s != nil && o.Workspace == "" && o.Earlier == nil {
		return s.Git
	}
	return nil
}

// clone has the declared repository cloned: what else is planned reads its files.
func (p *Plan) clone(ctx context.Context, o *Options, git *v1alpha1.GitSource) error {
	if o.InPlace {
		return reason.Usagef("--in-place: the files of the run come from %s, and there is no folder to work on", git.URL).WithHint("leave --in-place out, or name a folder with --workspace")
	}
	if o.Clone == nil {
		return nil // the call is only judged
	}
	cloned, err := o.Clone(ctx, p, git)
	if err != nil {
		return err
	}
	p.Cloned, p.Workspace.Source, p.Workspace.Cloned = cloned, cloned.Dir, true
	for _, note := range cloned.Notes {
		p.Warnings = append(p.Warnings, "workspace: "+note)
	}
	return nil
}

// place resolves which files the run works on.
func (p *Plan) place(ctx context.Context, o *Options) error {
	if o.Earlier != nil {
		p.keep(o.Earlier, o)
		return nil
	}
	spec := p.declared()
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
	if git := p.repository(o); git != nil {
		return p.clone(ctx, o, git)
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
	if p.Workspace.Source == "" || p.Workspace.Cloned {
		return nil
	}
	if err := workspace.Usable(p.Workspace); err != nil {
		return reason.Usagef("%w", err).WithHint("name a project folder with --workspace")
	}
	return nil
}

// inWorkspace returns those of the documents' files that lie in the workspace, as paths
// in it, and the commands beside them: a tool must not rewrite the rules of its own run, nor the prompts
// of later ones.
func (p *Plan) inWorkspace(docs []*manifest.Document, commands []string) []string {
	var in []string
	looked := map[string]bool{} // a file may hold many documents
	if len(commands) > 0 {
		docs = append(slices.Clip(docs), &manifest.Document{Files: commands})
	}
	for _, d := range docs {
		files := d.Files
		if len(files) == 0 {
			files = []string{filepath.Join(d.Dir, filepath.Base(d.File))}
		}
		for _, file := range files {
			if looked[file] {
				continue
			}
			looked[file] = true
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
