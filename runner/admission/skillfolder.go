package admission

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/skill"
)

// workspaceSkills compares the skills that an agent finds in its workspace with the
// specification. Without Strict, a run reports those that it leaves out.
func (a *admitter) workspaceSkills(d *manifest.Document, ag *v1alpha1.Agent) {
	folders := ag.Spec.SkillFolders
	if !a.opts.Strict || a.opts.Elsewhere || len(folders) == 0 || d.Faulty("spec.skillFolders") {
		return
	}
	for _, dir := range a.workspacesOf(ag) {
		for _, r := range skill.Review(dir, folders) {
			at := slices.IndexFunc(folders, func(folder string) bool {
				folder = path.Clean(filepath.ToSlash(folder))
				return folder == "." || strings.HasPrefix(r.Folder+"/", folder+"/")
			})
			text := r.Text
			if r.Folder != "" {
				text = r.Folder + ": " + text
			}
			a.add(d.Warnf(manifest.Index("spec.skillFolders", max(at, 0)), "%s", text))
		}
	}
}

// workspacesOf are the folders that runs of an agent work on: those that the manifests
// name, else the current one.
func (a *admitter) workspacesOf(ag *v1alpha1.Agent) (dirs []string) {
	add := func(w *v1alpha1.WorkspaceSpec, dir string) {
		if w == nil || w.Source == nil || w.Source.Path == "" {
			return
		}
		if dir := absolute(dir, w.Source.Path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	runs := slices.Clone(a.catalog.unnamed)
	for _, name := range names(a.catalog.Runs) {
		runs = append(runs, a.catalog.Runs[name])
	}
	for _, r := range runs {
		if r.Object.Spec.AgentRef.Name != ag.Name {
			continue
		}
		add(r.Object.Spec.Workspace, r.Doc.Dir)
		if ref := r.Object.Spec.WorkspaceRef; ref != nil {
			if w, ok := a.catalog.Workspaces[ref.Name]; ok {
				add(&w.Object.Spec.WorkspaceSpec, w.Doc.Dir)
			}
		}
	}
	if len(dirs) == 0 {
		if here, err := filepath.Abs("."); err == nil {
			dirs = []string{here}
		}
	}
	return dirs
}
