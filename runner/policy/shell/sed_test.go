package shell

import (
	"strings"
	"testing"
)

func TestSedPrograms(t *testing.T) {
	for script, want := range map[string]string{ // what they read | write
		`sed -n '/a/,$p' f`:                  "f|",
		`sed 's/a|b/c;d/g; /x/{n;d}' f`:      "f|",
		`sed -e 's,[^/]*/,,' -e '$!N;P;D' f`: "f|",
		`sed '/^[]/x]/!d' f`:                 "?",
		`sed 's/[]/];#/e' f`:                 "?",
		`sed 's/[]/]/;#/e' f`:                "?",
		`sed 's/[[:x:]/]/;#/e' f`:            "?",
		`sed -e ':a;N;$!ba' -e 's/\n/ /g' f`: "f|",
		`sed '2i text; e; w x' f`:            "f|",
		`sed '1w out' f`:                     "f|out",
		`sed -n 's/a/b/pw out' f`:            "f|out",
		`sed '/x/r extra' f`:                 "extra f|",
		`sed -i.bak 's/a/b/' f d/g`:          "d/g f|d/g d/g.bak f f.bak",
		`sed -i'old_*' 1d d/g`:               "d/g|d/g d/old_g",
		`sed '1e' f`:                         "?",
		`sed 's/a/b/e' f`:                    "?",
		`sed 's/x/y/;1e touch z' f`:          "?",
		`sed -e 'a\' -e 'e touch z' f`:       "f|",
		`sed "$x" f`:                         "?",
		`sed -f prog f`:                      "?",
		`sed 'y/ab/cd/;l 5;q 3' f`:           "f|",
		`sed '\,a,d;s_a_b_;1~2d;0,/x/I!d' f`: "f|",
		`sed --in-place -E 's/(a)/\1/' *.go`: "*.go|*.go",
	} {
		f := Parse(script, "")
		got := strings.Join(sorted(f.Reads), " ") + "|" + strings.Join(sorted(f.Writes), " ")
		if f.Dynamic || f.Opaque {
			got = "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q: %v", script, got, want, f.Reasons)
		}
	}
}
