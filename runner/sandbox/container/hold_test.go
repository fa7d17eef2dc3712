//go:build linux

package container_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// held starts a container for programs by call.
func held(t testing.TB, r *container.Runtime, spec container.Spec) *container.Held {
	t.Helper()
	spec.Image = shared.layout
	h, err := r.Hold(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// runIn runs one program in it.
func runIn(t testing.TB, h *container.Held, x container.Exec) (string, container.ExitInfo) {
	t.Helper()
	var out bytes.Buffer
	x.Stdout = &out
	p, err := h.Start(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	info := wait(t, p)
	return out.String(), info
}

func TestProgramsByCallGetArgumentsAndGiveResults(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, alone(t))
	h := held(t, r, container.Spec{Argv: []string{"/tool", "echo", "TOKEN", "CALL", "FROM_IMAGE"}, Env: []string{"TOKEN=declared"}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var out bytes.Buffer
			args := fmt.Sprintf(`{"n":%d,"text":%q}`+"\n", i, strings.Repeat("x", 300_000))
			p, err := h.Start(t.Context(), container.Exec{Stdin: strings.NewReader(args), Stdout: &out, Env: []string{fmt.Sprintf("CALL=c%d", i)}})
			if err != nil {
				t.Error(err)
				return
			}
			if info := wait(t, p); info != (container.ExitInfo{}) {
				t.Errorf("call %d ended with %v: %s", i, info, p.Stderr())
			}
			if want := args + fmt.Sprintf("TOKEN=declared\nCALL=c%d\nFROM_IMAGE=yes\n", i); out.String() != want {
				t.Errorf("call %d: got %.80q of %d bytes, want %.80q of %d", i, out.String(), out.Len(), want, len(want))
			}
		})
	}
	wg.Wait()
	h.Close()
	leavesNothing(t, r)
}

func TestProgramsByCallEndAsTheyDo(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	h := held(t, r, container.Spec{Argv: []string{"/tool", "echo"}, Limits: container.Limits{Memory: 96 << 20}})
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/tool", "exit", "9"}, "exit code 9"},
		{[]string{"none"}, "exit code 127"},
		{[]string{"/tool", "echo"}, "exit code 0"},
		{[]string{"/tool", "eat"}, "signal killed: out of memory: exceeded 96Mi (spec.limits.memory)"},
		{[]string{"/tool", "exit", "9"}, "exit code 9"}, // what was before is not its fault
	} {
		if _, info := runIn(t, h, container.Exec{Argv: c.argv}); info.String() != c.want {
			t.Errorf("%q: got %q, want %q", c.argv, info, c.want)
		}
	}
	if _, info := runIn(t, h, container.Exec{}); info.Code != 0 {
		t.Errorf("after all that the container does not serve: %v", info)
	}
}

func TestAKillOfOneCallLeavesTheOthers(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	h := held(t, r, container.Spec{Argv: []string{"/tool", "wait"}})
	begin := func(argv ...string) *container.Process {
		said := make(signal, 1)
		p, err := h.Start(t.Context(), container.Exec{Argv: argv, Stdout: said})
		if err != nil {
			t.Fatal(err)
		}
		<-said
		return p
	}
	other := begin("/tool", "wait")
	for _, c := range []struct {
		argv  []string
		grace time.Duration
		want  string
	}{
		{[]string{"/tool", "wait"}, patience, "signal terminated"},
		{[]string{"/tool", "wait", "deaf"}, 20 * time.Millisecond, "signal killed"},
		{[]string{"/tool", "orphans", "wait", "deep"}, 0, "signal killed"},
	} {
		p := begin(c.argv...)
		p.Kill(c.grace)
		if got := p.Wait().String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
	// What a call leaves behind when it ends by itself is killed, too.
	if _, info := runIn(t, h, container.Exec{Argv: []string{"/tool", "orphans", "go", "deep"}}); info.Code != 0 {
		t.Errorf("ended with %v", info)
	}
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", other.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if left := inNamespace(namespace); len(left) != 3 {
		t.Errorf("%d processes are in the container, want 3: the one that holds it, agentctl-entry and the other call", len(left))
	}
	select {
	case <-other.Done():
		t.Error("the other call was killed, too")
	default:
	}
	h.Close()
	if info := other.Wait(); info.Signal != "killed" {
		t.Errorf("a call of a closed container ended with %v", info)
	}
	if _, err := h.Start(t.Context(), container.Exec{}); err == nil {
		t.Error("a closed container started a program")
	}
}

func TestACallOfAHeldContainerIsContained(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	dir := workspace(t, 0)
	h := held(t, r, container.Spec{Argv: []string{"/tool", "inside", "write:" + dir + "/new", "write:/new", "mount:", "dial:1.1.1.1:80"}, Workspace: dir, Access: v1alpha1.AccessReadWrite})
	out, _ := runIn(t, h, container.Exec{})
	for _, want := range []string{`"CapEff":"` + zeros, `"CapBnd":"` + zeros, `"NoNewPrivs":"1"`, `"Seccomp":"2"`, `"Uid":"65534`, `/new":"ok"`, `"write:/new":"open /new: read-only`, `"mount:":"operation not permitted"`, "network is unreachable"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}
