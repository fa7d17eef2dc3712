package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAFolderIsWhatACommandTouches: the folder that a command runs in is a fact of
// its own, however it is chosen.
func TestAFolderIsWhatACommandTouches(t *testing.T) {
	for script, want := range map[string]string{
		"cd /out && make": "/out", "cd /out; ls": "/out", "cd ../out && git log": "../out", "pushd /out && ls": "/out", "pushd /out; ls; popd": "/out", "git -C /out log": "/out", "git -C /a -C b log": "/a /a/b", "env -C /out ls": "/out",
		"env --chdir=/out ls": "/out", "env --ch /out ls": "/out", "make -C /out": "/out", "make -C/out all": "/out", "make --directory=/out": "/out", "make --dir /out": "/out", "tar -C /out -cf a.tar .": "/out", "ninja -C /out": "/out", "cmake -S /out -B build": "/out build",
		"cmake --build /out": "/out", "go -C /out build ./...": "/out", "cargo -C /out build": "/out", "npm --prefix /out test": "/out", "npm -C /out test": "/out", "pnpm --dir /out test": "/out", "yarn --cwd /out test": "/out", "(cd /out; ls)": "/out", "bash -c 'cd /out; ls'": "/out",
		"cd": "~", "cd a && cd b && ls": "a a/b", "if cd /out; then ls; fi": "/out", "for f in /out/*; do echo; done": "/out/", "echo ../out/*": "../out/", "sudo -D /out ls": "/out", "f() { cd /out; }; f; ls": "/out", "cd a; eval 'cd /out'": "a /out", "make -C link": "link", "ls": "", "ls *.go": "", "cd $x": "?",
	} {
		f := Parse(script, "")
		if diff := cmp.Diff(sorted(strings.Fields(want)), sorted(f.Folders)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", script, diff)
		}
		if want == Unknown && !f.Dynamic {
			t.Errorf("%q goes to a folder that is not known, and is not dynamic", script)
		}
	}
}

// TestAFailingCdIsFollowedToo: a script continues in the folder that it was in.
func TestAFailingCdIsFollowedToo(t *testing.T) {
	tests := map[string]struct{ reason, reads string }{
		"cd a; cat ../x":                         {"cd may fail", "x ../x"},
		"cd a && cat ../x":                       {"behind && it has worked", "x"},
		"cd a || cat ../x":                       {"behind || it has failed", "../x"},
		"cd a || exit 1; cat ../x":               {"the script has ended where it failed", "x"},
		"cd a || return; cat ../x":               {"there is nothing to return from", "x ../x"},
		"cd a || exit 1 2; cat ../x":             {"exit fails with two arguments", "x ../x"},
		"cd a || { echo no; exit 1; }; cat b":    {"the script has ended where it failed", "a/b"},
		"if cd a; then cat b; else cat ../x; fi": {"else is where it failed", "a/b ../x"},
		"if ! cd a; then cat ../x; fi":           {"a negation", "../x"},
		"! cd a && cat ../x":                     {"a negation", "../x"},
		"cd a && cd b; cat x":                    {"either may fail", "x a/x a/b/x"},
		"pushd a; cat ../x":                      {"as cd", "x ../x"},
		"cd a >/x; cat b":                        {"where the file cannot be opened, cd does not run", "b a/b"},
		"cd /; cat x":                            {"the root is always there", "/x"},
		"cd a && make; cd ..; cat x":             {"cd .. leads back, or further", "x a/x ../x"},
		"(cd a); cat b":                          {"a subshell", "b"},
		"cd a & cat b":                           {"a subshell", "b"},
		"f() { cat b; }; cd a && f":              {"a function runs where it is called", "b a/b"},
		"f() { cd a || return 1; cat b; }; f":    {"a function may return", "a/b"},
		"case x in a) cd a;; esac; cat b":        {"an item may not match", "b a/b"},
	}
	for script, tc := range tests {
		f := Parse(script, "")
		if diff := cmp.Diff(sorted(strings.Fields(tc.reads)), sorted(f.Reads)); diff != "" {
			t.Errorf("%q: %s (-want +got):\n%s", script, tc.reason, diff)
		}
	}
}

// TestAFolderThatIsThereIsEntered: where folders can be looked at, cd into one of them
// works.
func TestAFolderThatIsThereIsEntered(t *testing.T) {
	is := func(dir string) bool { return dir == "a" }
	tests := map[string]struct{ reason, reads string }{
		"cd a; cat ../x":            {"it is there", "x"},
		"cd b; cat ../x":            {"it is not", "x ../x"},
		"cd a; make; cd ..; cat x":  {"the folder that the script started in stays", "x"},
		"rm -r a; cd a; cat ../x":   {"it is gone by then", "x ../x"},
		"./run; cd a; cat ../x":     {"it may be gone by then", "x ../x"},
		"mv a b; cd a; cat ../x":    {"it has another name", "a x ../x"},
		"ls; cd a; cat ../x":        {"ls removes nothing", ". x"},
		"chmod 0 a; cd a; cat ../x": {"it cannot be entered", "x ../x"},
	}
	for script, tc := range tests {
		f := ParseIn(script, "", Files{IsFolder: is})
		reads := slices.DeleteFunc(sorted(f.Reads), func(p string) bool { return p == "." })
		want := slices.DeleteFunc(sorted(strings.Fields(tc.reads)), func(p string) bool { return p == "." })
		if diff := cmp.Diff(want, reads); diff != "" {
			t.Errorf("%q: %s (-want +got):\n%s", script, tc.reason, diff)
		}
	}
}

// TestTheVariableOfALoopIsKnown: it has the words of the loop, one after the other.
func TestTheVariableOfALoopIsKnown(t *testing.T) {
	tests := map[string]struct {
		reason, reads, writes string
		dynamic               bool
	}{
		`for f in *.go; do cat $f; done`:                          {"a pattern", "*.go", "", false},
		`for f in *.go; do cat "$f"; done`:                        {"quotes", "*.go", "", false},
		`for f in a b; do cat $f; done`:                           {"words", "a b", "", false},
		`for f in a b; do sort -o $f x; done`:                     {"an option's value", "x", "a b", false},
		`for f in a b; do cp x $f; done`:                          {"the last operand, which may be a folder", "x", "a b a/x b/x", false},
		`for f in *.go; do cp $f $f.bak; done`:                    {"a part of a word", "*.go", "*.go.bak *.go.bak/*.go", false},
		`for f in src/*; do cat <$f >out/$(basename $f); done`:    {"what a command prints is not known", "src/*", "?", true},
		`for f in *.go; do cat <"$f"; done`:                       {"a redirection", "*.go", "", false},
		`for f in $(ls); do cat $f; done`:                         {"what a command prints is not known", "?", "", true},
		`for f in $x; do cat $f; done`:                            {"a variable is not known", "?", "", true},
		`for f in "a b"; do cat $f; done`:                         {"it is split into words", "?", "", true},
		`for f in "a b"; do cat "$f"; done`:                       {"it is not", "a b", "", false},
		`for f in a; do :; done; cat $f`:                          {"behind the loop", "?", "", true},
		`for f in a; do cat ${f%x}; done`:                         {"another value", "?", "", true},
		`for f in rm ls; do $f x; done`:                           {"the name of a program", "", "", true},
		`for f in a; do (cd b && cat $f); done`:                   {"in another folder", "b/a", "", false},
		`for f in /etc/passwd; do cat $f; done`:                   {"outside", "/etc/passwd", "", false},
		`for f; do cat $f; done`:                                  {"the arguments of the script", "?", "", true},
		`for d in a b; do for f in x y; do cat $d/$f; done; done`: {"nested", "a/x a/y b/x b/y", "", false},
	}
	for script, tc := range tests {
		f := Parse(script, "")
		want := strings.Fields(tc.reads)
		if strings.HasPrefix(tc.reason, "it is not") {
			want = []string{"a b"}
		}
		if diff := cmp.Diff(sorted(want), sorted(f.Reads)); diff != "" {
			t.Errorf("%s: %s: reads (-want +got):\n%s", script, tc.reason, diff)
		}
		if diff := cmp.Diff(sorted(strings.Fields(tc.writes)), sorted(f.Writes)); diff != "" {
			t.Errorf("%s: %s: writes (-want +got):\n%s", script, tc.reason, diff)
		}
		if f.Dynamic != tc.dynamic {
			t.Errorf("%s: %s: dynamic %t %q", script, tc.reason, f.Dynamic, f.Reasons)
		}
	}
}
