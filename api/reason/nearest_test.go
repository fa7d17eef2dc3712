package reason

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"read", "bash", "grep", "glob", "instructions"}
	for written, want := range map[string]string{
		"raed": "read", "bsh": "bash", "READ": "read", "instrctions": "instructions", "write": "", "": "", strings.Repeat("x", 1000): "",
	} {
		if got := Nearest(written, names); got != want {
			t.Errorf("%.20q: got %q, want %q", written, got, want)
		}
	}
	if got := Nearest("read", []string{strings.Repeat("read", 100)}); got != "" {
		t.Errorf("a name longer than any is near: %.20q", got)
	}
}

func TestSortedPutsTheNearestFirstAndKeepsItsArgument(t *testing.T) {
	names := []string{"write", "bash", "read"}
	if got := Sorted("reed", names); got[0] != "read" || len(got) != 3 {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(names, []string{"write", "bash", "read"}) {
		t.Errorf("the names were moved: %v", names)
	}
}

func TestNearestIsModest(t *testing.T) {
	known := []string{"limits", "loopGuard", "tools", "mode", "modelRef"}
	for name, want := range map[string]string{
		"limit": "limits", "Limits": "limits", "loopgaurd": "loopGuard", "tool": "tools", "mdoe": "mode",
		"modlRef": "modelRef", "x": "", "": "", "entirelyDifferent": "", strings.Repeat("a", 200): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
	if got := Nearest("aa", []string{strings.Repeat("a", 300)}); got != "" {
		t.Errorf("a very long known name was suggested: %.20q", got)
	}
}
