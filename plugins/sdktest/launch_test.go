package sdktest

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
)

func TestLaunchNamesHowAProgramEnds(t *testing.T) {
	for script, want := range map[string]string{"exit 0": "<nil>", "exit 3": "exit code 3", "kill -9 $$": "signal killed"} {
		r, err := Launch([]string{"/bin/sh", "-c", script}, nil, "/")(nil, &exec.Cmd{}, "/tmp/x")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Kill(t.Context()); err != nil {
			t.Errorf("kill before the start: %v", err)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, r.Stderr()) }()
		if out, err := io.ReadAll(r.Stdout()); len(out) > 0 || err != nil {
			t.Errorf("%s: stdout %q, %v", script, out, err)
		}
		got := "<nil>"
		if err := r.Wait(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: ended with %s, want %s", script, got, want)
		}
		if r.Name() != "/bin/sh" || r.ID() == "" || r.Diagnose(t.Context()) != "" {
			t.Errorf("name %q, id %q", r.Name(), r.ID())
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	if _, err := Launch(nil, nil, "/")(nil, &exec.Cmd{}, ""); err == nil {
		t.Error("an empty command was accepted")
	}
	r, err := Launch([]string{"/no/such/program"}, nil, "/")(nil, &exec.Cmd{}, "/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err == nil {
		t.Error("a missing program was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait = %v", err)
	}
	for _, a := range [][2]string{{"tcp", "/tmp/x/s"}, {"unix", "/run/docker.sock"}, {"unix", "/tmp/x/../s"}} {
		if _, _, err := r.PluginToHost(a[0], a[1]); err == nil {
			t.Errorf("%v accepted", a)
		}
	}
	if n, a, err := r.HostToPlugin("unix", "/x"); n != "unix" || a != "/x" || err != nil {
		t.Errorf("host to plugin: %s %s %v", n, a, err)
	}
}

func TestLaunchKillsEvenForACallerInAHurry(t *testing.T) {
	r, err := Launch([]string{"/bin/sleep", "60"}, nil, "/")(nil, &exec.Cmd{}, "/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r.Stderr()) }()
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Kill(hurry); err != nil {
		t.Errorf("kill: %v", err)
	}
	if err := r.Wait(t.Context()); err == nil || err.Error() != "signal killed" {
		t.Errorf("ended with %v, want signal killed", err)
	}
	if err := name(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("another error became %v", err)
	}
}
