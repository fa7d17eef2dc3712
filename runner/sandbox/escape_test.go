//go:build linux

package sandbox

import (
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// leastAttempts is how many ways there are at least: an attempt that is left out
// must not look like one that was stopped.
const leastAttempts = 130

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
