package plan

import (
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

func TestWhatCountsAsContained(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp")
	quiet, loud := t.TempDir(), t.TempDir()
	for dir, kind := range map[string]uint32{quiet: syscall.S_IFREG, loud: syscall.S_IFIFO} {
		if err := syscall.Mknod(dir+"/file", kind|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	define := func(change func(*v1alpha1.ToolSpec)) *tool.Definition {
		d := &tool.Definition{Name: "x", Spec: v1alpha1.ToolSpec{
			Source: v1alpha1.ToolSource{Exec: &v1alpha1.ExecSource{Command: []string{"x"}}}, Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationSandbox},
			Network: v1alpha1.Network{Mode: v1alpha1.NetworkNone},
		}}
		change(&d.Spec)
		facts, err := sources.All().Facts(&d.Spec)
		if err != nil {
			t.Fatal(err)
		}
		d.Facts = facts
		return d
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ToolSpec)
		host   v1alpha1.IsolationLevel
		files  v1alpha1.WorkspaceStrategy
		want   bool
		// temporary: its sandbox has a /tmp of its own.
		temporary bool
	}{
		"in a sandbox, on a copy":         {func(*v1alpha1.ToolSpec) {}, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, true, true},
		"on a host without sandboxes":     {func(*v1alpha1.ToolSpec) {}, v1alpha1.IsolationNone, v1alpha1.StrategyCopy, false, false},
		"on the files themselves":         {func(*v1alpha1.ToolSpec) {}, v1alpha1.IsolationSandbox, v1alpha1.StrategyInPlace, false, true},
		"one that asks for None":          {func(s *v1alpha1.ToolSpec) { s.Isolation.Minimum = v1alpha1.IsolationNone }, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, false},
		"one that reaches the host":       {func(s *v1alpha1.ToolSpec) { s.Network.Mode = v1alpha1.NetworkHost }, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, true},
		"one that reaches what is listed": {func(s *v1alpha1.ToolSpec) { s.Network.Mode = v1alpha1.NetworkProxy }, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, true},
		"one that sees more":              {func(s *v1alpha1.ToolSpec) { s.Isolation.Mounts = []v1alpha1.Mount{{Path: quiet}} }, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, true, false},
		"one that somebody hears":         {func(s *v1alpha1.ToolSpec) { s.Isolation.Mounts = []v1alpha1.Mount{{Path: loud}} }, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, false},
		"one that changes more": {func(s *v1alpha1.ToolSpec) {
			s.Isolation.Mounts = []v1alpha1.Mount{{Path: "/srv", Access: v1alpha1.MountReadWrite}}
		}, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, true},
		"one that sees temporary files of the host": {func(s *v1alpha1.ToolSpec) {
			s.Isolation.Mounts = []v1alpha1.Mount{{Path: "/tmp/x", Access: v1alpha1.MountReadWrite}}
		}, v1alpha1.IsolationSandbox, v1alpha1.StrategyCopy, false, false},
		"an image, wherever": {func(s *v1alpha1.ToolSpec) {
			s.Source = v1alpha1.ToolSource{Container: &v1alpha1.ContainerSource{}}
		}, v1alpha1.IsolationNone, v1alpha1.StrategyCopy, true, true},
	} {
		got := policyTool(define(c.change), c.host, c.files)
		if got.Contained != c.want || got.OwnTemporary != c.temporary {
			t.Errorf("%s: contained is %v, its own temporary folder is %v", name, got.Contained, got.OwnTemporary)
		}
	}
}
