//go:build linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
)

func program(t testing.TB, l *Launcher) sdktest.Program {
	t.Helper()
	command := []string{self(t), "serve-fixtures"}
	env := []string{"DECLARED=yes", "PATH=/usr/bin:/bin"}
	return sdktest.Program{Command: command, Env: env, Launch: l.PluginRunner(Spec{Argv: command, Env: env, Dir: "/tmp"})}
}

func TestPluginsUnderTheLauncher(t *testing.T) {
	t.Parallel()
	l := launcher(t)
	t.Run("fixtures", func(t *testing.T) { sdktest.RunFixtures(t, program(t, l)) })
}

func TestPluginsThatDoNotStartAreExplained(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := launcher(t)
	for want, spec := range map[string]Spec{
		"no such file":         {Argv: []string{"/no/such/plugin"}, Dir: "/"},
		"exec format error":    {Argv: []string{garbage}, Dir: "/"},
		"the command is empty": {Dir: "/"},
		"its sha256 is":        {Argv: []string{self(t)}, Dir: "/", Sha256: strings.Repeat("0", 64)},
		"reserved":             {Argv: []string{self(t)}, Dir: "/", Env: []string{"PLUGIN_UNIX_SOCKET_DIR=/tmp"}},
		"exit code 7":          {Argv: sh("exit 7"), Dir: "/"},
	} {
		p, err := host.Start(t.Context(), host.Options{Name: "x", Launch: l.PluginRunner(spec)})
		if err == nil {
			_ = p.Close(context.Background())
			t.Errorf("%v started", spec.Argv)
			continue
		}
		if _, ok := errors.AsType[*host.Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", spec.Argv, err, want)
		}
	}
}

func TestARunnerThatDidNotStartAnswersEverything(t *testing.T) {
	r, err := launcher(t).PluginRunner(Spec{Argv: []string{"/no/such/plugin"}, Dir: "/"})(nil, &exec.Cmd{Env: []string{"HOME=/root", "PLUGIN_X=1"}}, "/tmp/d")
	if err != nil {
		t.Fatal(err)
	}
	if r.ID() == "" || r.Name() != "/no/such/plugin" || r.Diagnose(t.Context()) != "" {
		t.Errorf("id %q, name %q", r.ID(), r.Name())
	}
	if got := r.(*plugin).spec.Env; len(got) != 1 || got[0] != "PLUGIN_X=1" {
		t.Errorf("environment = %q, want the handshake's only", got)
	}
	if err := r.Start(t.Context()); err == nil {
		t.Error("started")
	}
	if n, err := r.Stdout().Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("stdout has no end")
	}
	if err := r.Wait(t.Context()); err == nil {
		t.Error("waited for nothing")
	}
	if err := r.Kill(t.Context()); err != nil {
		t.Errorf("kill: %v", err)
	}
	if _, _, err := r.HostToPlugin("unix", "/x"); err == nil {
		t.Error("plugins do not call back")
	}
}

func TestPluginToHostTakesSocketsInItsFolderOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/run/docker.sock", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	p := &plugin{socketDir: dir}
	for _, addr := range []string{"file", "link", "none", "", ".", "..", "../x", "a/b", "\x00"} {
		if _, got, err := p.PluginToHost("unix", dir+"/"+addr); err == nil {
			t.Errorf("%q accepted as %q", addr, got)
		}
	}
	for _, addr := range []string{"", "/run/docker.sock", dir, dir + "2/x", strings.TrimPrefix(dir, "/") + "/x"} {
		if _, got, err := p.PluginToHost("unix", addr); err == nil {
			t.Errorf("%q accepted as %q", addr, got)
		}
	}
	if _, _, err := p.PluginToHost("tcp", dir+"/x"); err == nil {
		t.Error("tcp accepted")
	}
}

func FuzzPluginToHost(f *testing.F) {
	for _, s := range []string{"/run/plugin/x", "/run/plugin/../x", "/run/plugin//x", "/run/plugin/.", "/run/pluginx", "x", "", "/run/plugin/\x00", "@abstract"} {
		f.Add("unix", s)
	}
	f.Add("tcp", "127.0.0.1:1")
	f.Fuzz(func(t *testing.T, network, addr string) {
		base, err := socketName("/run/plugin", network, addr)
		path := filepath.Join("/run/plugin", base)
		if err == nil && (network != "unix" || filepath.Dir(path) != "/run/plugin" || path != addr || filepath.Clean(path) != path) {
			t.Errorf("%q %q accepted as %q", network, addr, path)
		}
	})
}

func BenchmarkPluginColdStart(b *testing.B) {
	l := launcher(b)
	p := program(b, l)
	for b.Loop() {
		h, err := host.Start(context.Background(), host.Options{Name: "x", Launch: p.Launch})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := h.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
