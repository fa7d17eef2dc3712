package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichVariablesComeFromOutside(t *testing.T) {
	for script, want := range map[string]string{
		"echo $TOKEN": "TOKEN", "cat <<< $TOKEN": "TOKEN", "cat <<E\n${TOKEN:-x}\nE": "TOKEN", "ls > $HOME/x": "HOME",
		"N=$(ls | wc -l); echo $N": "", "X=$TOKEN; echo $X": "TOKEN", "X=1 Y=$X; echo $Y": "", "printf -v Z a; echo $Z": "", "read x < f; echo $x": "x",
		"echo x | while read l; do echo $l; done": "", "for f in a b; do echo $f; done": "", "for f in a; do ls; done; echo $f": "f",
		// Where it may not have been set, or keeps a part of its value.
		"X=1 echo $X": "X", "X=1; unset X; echo $X": "X", "[ -f a ] && X=1; echo $X": "X", "if ls; then X=1; fi; echo $X": "X", "(X=1); echo $X": "X",
		"X+=a; echo $X": "X", "X[2]=a; echo $X": "X", "X=1 bash -c 'echo $X'": "X", "X=1 & echo $X": "X", "f() { echo $X; }; X=2; f": "X", "X=1 > /no/file; echo $X": "X",
		"echo $?$#$1": "", "echo ${!GIT*}": "", "echo '$X'": "",
		// Commands that show variables.
		"env": "*", "env A=b": "*", "env -u A": "*", "env A=b ls": "", "printenv": "*", "printenv A": "*", "export": "*", "export -p A": "A", "export A": "", "declare -px": "*",
		"declare -p": "*", "declare -f": "", "declare x": "", "typeset -x": "*", "readonly": "*", "set": "*", "set -e": "", "shopt": "",
		"jq -n env": "*", "jq -n '$ENV.A'": "*", "jq -n '[env.A]'": "*", "jq .env a.json": "", "jq . env.json": "", "yq -n 'strenv(A)'": "*",
		"awk 'BEGIN {print ENVIRON[\"A\"]}'": "*", "awk '{print $1}' f": "",
	} {
		f := Parse(script, "")
		got := slices.Clone(f.Inherited)
		slices.Sort(got)
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (want, got): %s", script, diff)
		}
	}
}

// A text of several lines that becomes one argument is known.
func TestATextOfAHereDocumentIsAnArgument(t *testing.T) {
	for script, want := range map[string]string{
		"git commit -m \"$(cat <<'E'\nfix: $x\n\n  more\nE\n)\"": "fix: $x\n\n  more",
		"git commit -m \"a $(cat <<\\E\nb\nE\n) c\"":             "a b c",
		"git commit -m \"$(cat <<E\n$x\nE\n)\"":                  Unknown,
		"git commit -m \"$(cat <<'E' f\nx\nE\n)\"":               Unknown,
		"git commit -m \"$(cat f <<'E'\nx\nE\n)\"":               Unknown,
		"git commit -m \"$(tac <<'E'\nx\nE\n)\"":                 Unknown,
		"git commit -m \"$(cat <<'E' > f\nx\nE\n)\"":             Unknown,
		"git commit -m \"$(cat <<-'E'\n\tx\n\tE\n)\"":            Unknown,
		"cat() { id; }; git commit -m \"$(cat <<'E'\nx\nE\n)\"":  Unknown,
	} {
		f := Parse(script, "")
		at := slices.IndexFunc(f.Commands, func(c Command) bool { return c.Name == "git" })
		if at < 0 || f.Commands[at].Argv[3] != want {
			t.Errorf("%q: %v, want %q", script, f.Commands, want)
		}
	}
	if f := Parse("rm \"$(cat <<'E'\n~/x\nE\n)\"", ""); !slices.Equal(f.Deletes, []string{"./~/x"}) {
		t.Errorf("a tilde in it is no home folder: %v", f.Deletes)
	}
}
