//go:build linux && amd64

package main

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestClassesAreRecognisedByScriptAndEffect(t *testing.T) {
	exec := []Effect{{Read, "/project/x", "cat", false}, {Exec, "/usr/bin/rm", "timeout", false}}
	for _, c := range []struct {
		reason, script, want string
		missing              []Effect
		effect               int
	}{
		{"the second effect shows it", "timeout -x 5 rm x", "an attached or abbreviated option of a program that starts another one", exec, 1},
		{"the script is another one", "other -x 5 rm x", "a program that starts another one", exec, 1},
		{"the effect is another one", "let 1&:", "a name that is looked up on the network", []Effect{{Connect, "10.0.0.1:1", "x", false}}, 0},
	} {
		got, effect := class(result{sample: sample{Script: c.script}, Missing: c.missing})
		if got != c.want || effect != c.effect {
			t.Errorf("%s: got %q and effect %d, want %q and %d", c.reason, got, effect, c.want, c.effect)
		}
	}
	for _, m := range mechanisms() {
		if m.script == nil || m.effect == nil {
			t.Errorf("the class %q lacks a pattern", m.name)
		}
	}
}

func TestOptionsAreCutBehindTheTilde(t *testing.T) {
	g := &generator{grammar{"script": {"x --ab~cd=1"}}, rand.New(rand.NewPCG(1, 1))}
	seen := map[string]bool{}
	for range 200 {
		seen[g.Script()] = true
	}
	if len(seen) != 3 || !seen["x --ab=1"] || !seen["x --abc=1"] || !seen["x --abcd=1"] {
		t.Errorf("got %v", seen)
	}
}

func TestAttacksNameTheirFiles(t *testing.T) {
	s := attack{ID: "X", Command: "cp a @OUT@/b; >@M@", Setup: "touch @OUT@/a"}.sample()
	if s.Script != "cp a /out/b; >/out/marker" || !strings.HasSuffix(s.Before, "touch /out/a") {
		t.Errorf("got %+v", s)
	}
}
