package shell

import (
	"slices"
	"testing"
)

func TestProgramsOutsideTheTableAreOpaque(t *testing.T) {
	for _, c := range []struct {
		script   string
		opaque   bool
		maybe    []string
		commands []string
	}{
		{"ls -l; cat go.mod", false, nil, []string{"ls", "cat"}},
		{"frobnicate --fast rm -rf build", true, []string{"rm", "build"}, []string{"frobnicate"}},
		{"frobnicate sh -c 'rm x'", true, nil, []string{"frobnicate", "sh", "rm"}},
		{"nice frobnicate git push", true, []string{"git", "push"}, []string{"nice", "frobnicate"}},
	} {
		f := Parse(c.script, "")
		var names, maybe []string
		for _, x := range f.Commands {
			names = append(names, x.Name)
			if (x.Opaque != "") != (x.Name == "frobnicate") {
				t.Errorf("%s: the command %s is opaque: %q", c.script, x.Name, x.Opaque)
			}
		}
		for _, x := range f.Maybe {
			maybe = append(maybe, x.Name)
		}
		if f.Opaque != c.opaque || f.Dynamic || !slices.Equal(maybe, c.maybe) || !slices.Equal(names, c.commands) {
			t.Errorf("%s: opaque %v, dynamic %v %v, commands %v, maybe %v", c.script, f.Opaque, f.Dynamic, f.Reasons, names, maybe)
		}
	}
}
