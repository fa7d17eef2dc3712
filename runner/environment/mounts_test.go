package environment

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
	"github.com/google/go-cmp/cmp"
)

func mounting(paths ...string) tool.Definition {
	var d tool.Definition
	for _, path := range paths {
		d.Spec.Isolation.Mounts = append(d.Spec.Isolation.Mounts, v1alpha1.Mount{Path: path})
	}
	return d
}

// What is hidden in the files of a run is hidden at every path at which a mount shows the
// folder that they come from.
func TestMountsOfTheSourceShowNothingThatIsHidden(t *testing.T) {
	source, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"a/private/k.txt", "a/SKILL.md", "ab/private/k.txt", "b/c.txt"} {
		write(t, source+"/"+name, "")
	}
	if err := os.Symlink(source+"/a", elsewhere+"/link"); err != nil {
		t.Fatal(err)
	}
	hidden := []string{"a/private/k.txt", "ab/private/k.txt"}
	for _, c := range []struct {
		reason        string
		mounts        []string
		names, masked []string
	}{
		{"a folder", []string{source + "/a"}, []string{"a/SKILL.md", "a/private/k.txt"}, []string{source + "/a/private/k.txt"}},
		{"the same folder twice", []string{source + "/a", source + "/a"}, []string{"a/SKILL.md", "a/private/k.txt"}, []string{source + "/a/private/k.txt"}},
		{"a link from elsewhere", []string{elsewhere + "/link"}, []string{"a/SKILL.md", "a/private/k.txt"}, []string{elsewhere + "/link/private/k.txt"}},
		{"the hidden file itself", []string{source + "/a/private/k.txt"}, []string{"a/private/k.txt"}, []string{source + "/a/private/k.txt"}},
		{
			"all of it",
			[]string{source},
			[]string{"a/SKILL.md", "a/private/k.txt", "ab/private/k.txt", "b/c.txt"},
			[]string{source + "/a/private/k.txt", source + "/ab/private/k.txt"},
		},
		{"a folder without such files", []string{source + "/b"}, []string{"b/c.txt"}, nil},
		{"a folder elsewhere, and none", []string{elsewhere, source + "/gone"}, nil, nil},
	} {
		m, err := mountsOf([]tool.Definition{mounting(c.mounts...), {}}, workspace.Spec{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		names, err := m.names(t.Context(), 10)
		if diff := cmp.Diff(c.names, names); diff != "" || err != nil {
			t.Errorf("%s: names %s, %v", c.reason, diff, err)
		}
		if diff := cmp.Diff(c.masked, m.at(hidden)); diff != "" {
			t.Errorf("%s: hidden %s", c.reason, diff)
		}
	}
	// A folder around the source shows its files as well.
	m, err := mountsOf([]tool.Definition{mounting(source)}, workspace.Spec{Source: source + "/a"})
	if err != nil {
		t.Fatal(err)
	}
	names, err := m.names(t.Context(), 10)
	if want := []string{"SKILL.md", "private/k.txt"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("around: %v, %v", names, err)
	}
	if got, want := m.at([]string{"private/k.txt"}), []string{source + "/a/private/k.txt"}; !slices.Equal(got, want) {
		t.Errorf("around: hidden are %v, want %v", got, want)
	}
}

func TestListingWhatMountsShowEnds(t *testing.T) {
	source := t.TempDir()
	write(t, source+"/a/1", "")
	write(t, source+"/a/2", "")
	m, err := mountsOf([]tool.Definition{mounting(source + "/a")}, workspace.Spec{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.names(t.Context(), 1); !errors.Is(err, workspace.ErrTooLarge) {
		t.Errorf("too many files: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.names(ctx, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that ends: %v", err)
	}
	for reason, files := range map[string]workspace.Spec{
		"no folder": {}, "a folder that is not used": {Source: source, Strategy: v1alpha1.StrategyEmpty}, "a folder that has gone": {Source: source + "/gone"},
	} {
		if m, err := mountsOf([]tool.Definition{mounting(source)}, files); err != nil || len(m.shown) > 0 {
			t.Errorf("%s: %v, %v", reason, m, err)
		}
	}
}
