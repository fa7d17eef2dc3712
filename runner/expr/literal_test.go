package expr

import (
	"slices"
	"strings"
	"testing"
)

func TestLiteralsAndFieldsOfAnExpression(t *testing.T) {
	env := testEnv(t)
	for _, c := range []struct {
		src, literals string
		reads         bool
	}{
		{"cmd.commands.exists(c, c.name == 'rm' || c.name in ['dd', 'rm'])", "rm dd", false},
		{"cmd.commands.all(c, c.hidden == '')", "", true},
		{"cmd.dynamic && call.args.nested.inner == 'hidden'", "hidden", false},
		{"cmd.commands[0].hidden == 'x'", "x", true},
	} {
		p, err := env.Bool(c.src)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for w := range strings.FieldsSeq(c.literals) {
			want = append(want, w)
		}
		got := slices.DeleteFunc(p.Literals(), func(s string) bool { return s == "" })
		if !slices.Equal(got, want) || p.ReadsField("hidden", "cmd") != c.reads {
			t.Errorf("%s: literals %q, reads hidden: %v", c.src, got, p.ReadsField("hidden", "cmd"))
		}
	}
}
