//go:build linux

package container_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/container"
)

func TestEveryEndIsReportedAsWhatItWas(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, c := range map[string]struct {
		reason string
		argv   []string
		limits container.Limits
		want   string
		cause  container.Cause
	}{
		"success":         {"nothing to say", []string{"/tool", "exit", "0"}, container.Limits{}, "exit code 0", ""},
		"crash":           {"its code", []string{"/tool", "exit", "3"}, container.Limits{}, "exit code 3", ""},
		"memory":          {"the kernel killed it", []string{"/tool", "eat"}, container.Limits{Memory: 64 << 20}, "signal killed: out of memory: exceeded 64Mi (spec.limits.memory)", container.OutOfMemory},
		"memory of child": {"the event comes, too, when only a child was killed", []string{"/tool", "eat", "child"}, container.Limits{Memory: 64 << 20}, "exit code 3: a process it had started was killed: out of memory: exceeded 64Mi (spec.limits.memory)", container.OutOfMemory},
		"processes":       {"fork gives EAGAIN", []string{"/tool", "fork"}, container.Limits{Pids: 32}, "more than 32 processes and threads were refused (spec.limits.pids)", container.TooManyProcesses},
		"no program":      {"as a shell says it", []string{"nothing"}, container.Limits{}, "exit code 127", ""},
		"no file":         {"as a shell says it", []string{"/none"}, container.Limits{}, "exit code 127", ""},
		"not executable":  {"as a shell says it", []string{"/etc/hosts"}, container.Limits{}, "exit code 126", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, info := output(t, r, container.Spec{Argv: c.argv, Limits: c.limits})
			if !strings.Contains(info.String(), c.want) || info.Cause != c.cause {
				t.Errorf("got %q (%s), want %q (%s): %s", info, info.Cause, c.want, c.cause, c.reason)
			}
		})
	}
}

func TestTheLastLinesOfACrashAreKeptAndHarmless(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p, err := r.Start(t.Context(), container.Spec{Image: shared.layout, Argv: []string{"/tool", "exit", "5"}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	lines := strings.Split(p.Stderr(), "\n")
	if len(lines) != 20 || lines[0] != "line 10 [31mred" || lines[19] != "line 29 [31mred" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestAKillEndsEverythingInTheContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, c := range map[string]struct {
		argv  []string
		grace time.Duration
		want  string
	}{
		"told to end":   {[]string{"/tool", "wait"}, patience, "signal terminated"},
		"not listening": {[]string{"/tool", "wait", "deaf"}, 50 * time.Millisecond, "signal killed"},
		"at once":       {[]string{"/tool", "wait"}, 0, "signal killed"},
		"with orphans":  {[]string{"/tool", "orphans", "wait", "deep"}, 0, "signal killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := waiting(t, r, container.Spec{Argv: c.argv})
			namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.PID()))
			if err != nil {
				t.Fatal(err)
			}
			p.Kill(c.grace)
			if got := p.Wait().String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if left := inNamespace(namespace); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			p.Kill(time.Second) // a second Kill is harmless
		})
	}
}

// inNamespace lists the processes of a process namespace.
func inNamespace(name string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	var out []string
	for _, l := range links {
		if n, err := os.Readlink(l); err == nil && n == name {
			out = append(out, l)
		}
	}
	return out
}

func TestAFloodIsDrainedThoughNobodyReads(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	n := 0
	for name, spec := range map[string]container.Spec{
		"nobody":       {},
		"one who left": {Stdout: failing{}},
		"a counter":    {Stdout: counter{&n}},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Image, spec.Argv = shared.layout, []string{"/tool", "flood", "20000000"}
			p, err := r.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if info := wait(t, p); info.Code != 0 {
				t.Errorf("ended with %v", info)
			}
		})
	}
	if n != 20_000_000 {
		t.Errorf("%d bytes came, not 20000000", n)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

type counter struct{ n *int }

func (c counter) Write(b []byte) (int, error) { *c.n += len(b); return len(b), nil }

func TestACancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, alone(t), func(o *container.Options) { o.Log = slog.New(slog.NewTextHandler(t.Output(), nil)) })
	if err := r.Pull(t.Context(), shared.layout); err != nil {
		t.Fatal(err)
	}
	started := 0

	for after := time.Duration(0); after < 300*time.Millisecond; after += 15 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if p, err := r.Start(ctx, container.Spec{Image: shared.layout, Argv: []string{"/tool", "wait"}}); err == nil {
			started++
			p.Kill(0)
		}
		cancel()
	}
	t.Logf("%d of 20 had started", started)
	leavesNothing(t, r)
}
