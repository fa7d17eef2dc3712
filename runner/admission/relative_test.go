package admission

import (
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestRelativePathsAreFound(t *testing.T) {
	tool := func(change func(*v1alpha1.ToolSpec)) any {
		var t v1alpha1.Tool
		change(&t.Spec)
		return &t
	}
	run := func(w *v1alpha1.WorkspaceSpec) any {
		return &v1alpha1.Run{Spec: v1alpha1.RunSpec{Workspace: w}}
	}
	source := func(path string) *v1alpha1.WorkspaceSource { return &v1alpha1.WorkspaceSource{Path: path} }
	for name, c := range map[string]struct {
		reason   string
		obj      any
		at, path string
	}{
		"plugin": {
			reason: "a command with a slash is a path",
			obj:    tool(func(s *v1alpha1.ToolSpec) { s.Source.Plugin = &v1alpha1.PluginSource{Command: []string{"./bin/x"}} }),
			at:     "spec.source.plugin.command[0]", path: "./bin/x",
		},
		"bare command": {
			reason: "a bare name is looked up in PATH",
			obj:    tool(func(s *v1alpha1.ToolSpec) { s.Source.Exec = &v1alpha1.ExecSource{Command: []string{"cat", "a/b"}} }),
		},
		"image layout": {
			reason: "oci: names a folder of this host",
			obj:    tool(func(s *v1alpha1.ToolSpec) { s.Source.Container = &v1alpha1.ContainerSource{Image: "oci:img@sha256:0"} }),
			at:     "spec.source.container.image", path: "img@sha256:0",
		},
		"mount": {
			reason: "the second of two mounts is looked at, too",
			obj: tool(func(s *v1alpha1.ToolSpec) {
				s.Isolation.Mounts = []v1alpha1.Mount{{Path: "/srv"}, {Path: "srv"}}
			}),
			at: "spec.isolation.mounts[1].path", path: "srv",
		},
		"key file": {
			reason: "a key is read from a file",
			obj: &v1alpha1.Model{Spec: v1alpha1.ModelSpec{APIKey: &v1alpha1.ValueSource{
				ValueFrom: v1alpha1.ValueFrom{File: "../key"},
			}}},
			at: "spec.apiKey.valueFrom.file", path: "../key",
		},
		"absolute key file": {
			reason: "an absolute path is left alone",
			obj: &v1alpha1.Model{Spec: v1alpha1.ModelSpec{APIKey: &v1alpha1.ValueSource{
				ValueFrom: v1alpha1.ValueFrom{File: "/etc/key"},
			}}},
		},
		"cassette of a test": {reason: "a cassette is a file", obj: &v1alpha1.Test{Spec: v1alpha1.TestSpec{Record: "x.jsonl"}}, at: "spec.record", path: "x.jsonl"},
		"files of a case": {
			reason: "each case has files",
			obj: &v1alpha1.Test{Spec: v1alpha1.TestSpec{Record: "/x", Cases: []v1alpha1.TestCase{
				{Record: "/y"}, {Workspace: &v1alpha1.TestWorkspace{Source: &v1alpha1.TestFolder{Path: "repo"}}},
			}}},
			at: "spec.cases[1].workspace.source.path", path: "repo",
		},
		"absolute test":      {reason: "nothing of it is relative", obj: &v1alpha1.Test{Spec: v1alpha1.TestSpec{Record: "/x", Workspace: &v1alpha1.TestWorkspace{}}}},
		"workspace":          {reason: "a folder", obj: run(&v1alpha1.WorkspaceSpec{Source: source("repo")}), at: "spec.workspace.source.path", path: "repo"},
		"no folder":          {reason: "a copy of no folder would be one of the current", obj: run(&v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyCopy}), at: "spec.workspace.source.path"},
		"absolute workspace": {reason: "an absolute folder", obj: run(&v1alpha1.WorkspaceSpec{Source: source("/srv")})},
		"empty workspace":    {reason: "nothing is read", obj: run(&v1alpha1.WorkspaceSpec{Strategy: v1alpha1.StrategyEmpty})},
		"no workspace":       {reason: "nothing is said", obj: run(nil)},
		"named workspace":    {reason: "a Workspace is judged like that of a run", obj: &v1alpha1.Workspace{Spec: v1alpha1.NamedWorkspaceSpec{WorkspaceSpec: v1alpha1.WorkspaceSpec{Source: source("repo")}}}, at: "spec.source.path", path: "repo"},
		"sourceless":         {reason: "there is no current folder", obj: &v1alpha1.Workspace{}, at: "spec.source.path"},
		"git":                {reason: "a URL is no path", obj: &v1alpha1.Workspace{Spec: v1alpha1.NamedWorkspaceSpec{WorkspaceSpec: v1alpha1.WorkspaceSpec{Source: &v1alpha1.WorkspaceSource{Git: &v1alpha1.GitSource{URL: "x"}}}}}},
		"skill":              {reason: "a folder", obj: &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Dir: "skills/x"}}, at: "spec.dir", path: "skills/x"},
		"absolute skill":     {reason: "an absolute folder", obj: &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Dir: "/skills/x"}}},
		"skill in an image":  {reason: "the folder is one of the image", obj: &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Image: "registry.example/x@sha256:0", Dir: "skills/x"}}},
		"skill in a layout":  {reason: "a folder of the host", obj: &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Image: "oci:img@sha256:0"}}, at: "spec.image", path: "img@sha256:0"},
		"absolute layout":    {reason: "an absolute folder", obj: &v1alpha1.Skill{Spec: v1alpha1.SkillSpec{Image: "oci:/img@sha256:0", Dir: "x"}}},
		"planned skill":      {reason: "it has no folder", obj: &v1alpha1.Skill{}},
		"agent":              {reason: "context files are of the workspace", obj: &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{ContextFiles: []string{"AGENTS.md"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if at, path := Relative(c.obj); at != c.at || at != "" && path != c.path {
				t.Errorf("%s: got %q at %q, want %q at %q", c.reason, path, at, c.path, c.at)
			}
		})
	}
}
