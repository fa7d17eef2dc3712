//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// leastAttempts is how many ways there are at least: an attempt that is left out
// must not look like one that was stopped.
const leastAttempts = 152

func TestNothingEscapesASandbox(t *testing.T) {
	list, err := sandboxed(t).Escape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < leastAttempts {
		t.Errorf("only %d attempts were made", len(list))
	}
	for _, a := range list {
		if a.Open {
			t.Errorf("escaped: %s", a.Name)
		}
	}
}

// Process 1 could be ended from inside by a signal that came while its first thread
// blocked signals: in one of 40 attempts.
func TestNoSignalEndsProcessOne(t *testing.T) {
	for range 60 {
		if _, err := sandboxed(t).Escape(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatALevelLeavesOpen runs the same attempts where they should work: an
// attempt that fails everywhere shows nothing.
func TestWhatALevelLeavesOpen(t *testing.T) {
	network := []string{"connect to a TCP port outside", "send a UDP packet outside"}
	none := append([]string{
		"read a file outside", "write a file outside", "list the folder of a file outside", "read it through /proc/self/root",
		"read it through a link in the workspace", "read it with .. from the workspace",
		"connect to a unix socket outside", "connect to an abstract socket outside",
		"signal a process outside", "read the environment of a process outside", "see the command of a process outside",
	}, network...)
	for name, c := range map[string]struct {
		reason  string
		profile func(ws string) *spec.Profile
		open    []string
	}{
		"level None": {"nothing contains it", func(string) *spec.Profile { return nil }, none},
		"host network": {"only the network is the host's", func(ws string) *spec.Profile {
			return &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite, Network: spec.NetworkHost}
		}, network},
		"empty network": {"nothing is reached", func(ws string) *spec.Profile { return &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := newOutside()
			if err != nil {
				t.Fatal(err)
			}
			defer out.close()
			targets := out.targets
			targets.Fixed, targets.Masked, targets.Inside = nil, nil, false
			l := sandboxed(t)
			p := c.profile(targets.Workspace)
			open := slices.Clone(c.open)
			if p != nil && p.Network == spec.NetworkHost && l.probe().Landlock < 6 {
				open = append(open, "connect to an abstract socket outside") // they belong to the network namespace
			}
			list, err := l.attempt(t.Context(), p, targets)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if want := slices.Contains(open, a.Name); a.Open != want {
					t.Errorf("%s: open is %v (%s), want %v: %s", a.Name, a.Open, a.How, want, c.reason)
				}
			}
			if len(list) != len(none) {
				t.Errorf("%d attempts, want %d", len(list), len(none))
			}
		})
	}
}

// TestUnprotectedFilesAreOpen shows that the attempts on protected files work
// where nothing protects them.
func TestUnprotectedFilesAreOpen(t *testing.T) {
	out, err := newOutside()
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	ws := out.targets.Workspace
	targets := spec.Targets{Workspace: ws, Fixed: []string{ws + "/.git/config"}, Masked: []string{ws + "/.env"}}
	list, err := sandboxed(t).attempt(t.Context(), &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite}, targets)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if strings.HasPrefix(a.Name, "write ") || strings.HasPrefix(a.Name, "read ") {
			if !a.Open {
				t.Errorf("%s: %s, although nothing protects it", a.Name, a.How)
			}
		}
	}
	if len(list) < 10 {
		t.Errorf("only %d attempts", len(list))
	}
}

// swaps is how often a folder and a link change places.
const swaps = 100_000

// swapLinks lets a folder of the workspace and a link to the outside change
// places as fast as it can, and reads a file through them all the while.
func swapLinks(ws string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range swaps {
			if err := unix.Renameat2(unix.AT_FDCWD, ws+"/dir", unix.AT_FDCWD, ws+"/link", unix.RENAME_EXCHANGE); err != nil {
				fmt.Println("swap:", err)
				return
			}
		}
	}()
	found := map[string]int{}
	for {
		for _, name := range []string{"/dir/file", "/link/file"} {
			b, err := os.ReadFile(ws + name)
			if err != nil {
				b = []byte("nothing")
			}
			found[string(b)]++
		}
		select {
		case <-done:
			fmt.Println(found["inside"] > 0, found["nothing"] > 0, found["outside"])
			return
		default:
		}
	}
}

func TestSwappedLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	l := sandboxed(t)
	ws, outside := workspace(t), workspace(t)
	write(t, ws+"/dir/file", "inside")
	write(t, outside+"/file", "outside")
	if err := os.Symlink(outside, ws+"/link"); err != nil {
		t.Fatal(err)
	}
	s := Spec{Argv: []string{self(t), "swap-links", ws}, Dir: "/"}
	if out, errs, _ := run(t, l, s); !strings.HasPrefix(out, "true false ") || strings.HasSuffix(out, " 0\n") {
		t.Fatalf("without a sandbox: %q (%s), want reads outside: the race must be one", out, errs)
	}
	s.Profile = &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite}
	if out, errs, _ := run(t, l, s); out != "true true 0\n" {
		t.Errorf("in the sandbox: %q (%s), want reads inside, and nothing where the link leads", out, errs)
	}
}

// A program swaps a folder for a link while a file in it is being masked. The
// mask lies on the file or nowhere, never on another one.
func TestMasksAreNotLedAstray(t *testing.T) {
	l := sandboxed(t)
	masked := 0
	for range 5 { // the race may end with a folder that cannot be moved back
		ws := workspace(t)
		write(t, ws+"/dir/secret", "secret\n")
		write(t, ws+"/other/secret", "other\n")
		p := &spec.Profile{Workspace: ws, Access: spec.AccessReadWrite}
		var out buffer
		swapper := shell(p, "cd "+ws+"; echo up; while :; do mv -T dir real && ln -sfn other dir; rm -f dir; mv -T real dir; done 2>/dev/null")
		swapper.Stdout = &out
		proc, err := l.Start(t.Context(), swapper)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return out.String() != "" }, func() string { return "it does not swap" })
		done := false
		for i := 0; i < 2000 && !done; i++ {
			m := spec.Request{Op: spec.OpProtect, Masked: []string{ws + "/dir/secret"}}
			reply, err := proc.inner.instance.ask(t.Context(), &m, nil, nil)
			done = err == nil && len(reply.Missing) == 0
		}
		got, _, _ := run(t, l, shell(p, "cat "+ws+"/other/secret"))
		if got != "other\n" {
			t.Errorf("the mask lies on another file: %q", got)
		}
		proc.Kill(0)
		if !done {
			continue
		}
		masked++
		if got, _, _ := run(t, l, shell(p, "cat "+ws+"/dir/secret "+ws+"/real/secret")); strings.Contains(got, "secret") {
			t.Errorf("masked, but read: %q", got)
		}
	}
	if masked == 0 {
		t.Error("it was never masked, so nothing was shown")
	}
}
