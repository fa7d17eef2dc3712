//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// counted is where the program under test finds the folder of its coverage.
const counted = "/var/counted"

// TestMain makes the test's own binary the program, so that what it does counts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.EscapeArg {
		_ = os.Setenv("GOCOVERDIR", counted)
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestEveryAttemptIsStopped(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	helper := filepath.Join(dir, sandbox.Helper)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", helper, "../agentctl-sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the helper: %v\n%s", err, out)
	}
	l := sandbox.New(sandbox.Options{Helper: helper})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := l.Require("x", v1alpha1.IsolationSandbox, v1alpha1.NetworkNone); err != nil {
		t.Skip(err)
	}
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	in, err := json.Marshal(spec.Targets{
		Inside: true, File: "/root/.bashrc", Socket: "/run/x", Abstract: "x", TCP: "127.0.0.1:1", UDP: "127.0.0.1:1",
		Process: os.Getppid(), Fixed: []string{"/etc/hosts"}, Masked: []string{"/.masked/file"}, Workspace: "/tmp",
	})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	p, err := l.Start(t.Context(), sandbox.Spec{
		Argv: []string{exe, spec.EscapeArg}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs,
		Profile: &spec.Profile{Mounts: []spec.Mount{{Source: dir, Target: counted, Writable: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	n := 0
	for d := json.NewDecoder(&out); d.More(); n++ {
		var a spec.Attempt
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Open {
			t.Errorf("escaped: %s", a.Name)
		}
	}
	if n < 100 {
		t.Errorf("only %d attempts: %s", n, errs.String())
	}
}

func TestTheProgramIsNotForPeople(t *testing.T) {
	for name, tc := range map[string]struct {
		args     []string
		in, want string
		code     int
	}{
		"without an argument": {nil, "", "is started by agentctl doctor", 2},
		"another argument":    {[]string{"--help"}, "", "is started by agentctl doctor", 2},
		"no targets":          {[]string{spec.EscapeArg}, "{", "unexpected EOF", 2},
		"outside a sandbox":   {[]string{spec.EscapeArg}, `{"file":"/proc/self/stat"}`, `{"name":"read a file outside","open":true}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(tc.args, strings.NewReader(tc.in), &out, &out); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit code %d, %s", code, out.String())
			}
		})
	}
}

func TestMachineCodeRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the code is that of another architecture")
	}
	// The same program without a foreign call ends well: what stops the attempt is not the program.
	native := []byte{0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05}
	if err := runCode(t.TempDir(), native); err != nil {
		t.Errorf("native code: %v", err)
	}
}
