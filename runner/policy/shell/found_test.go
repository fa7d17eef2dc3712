package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestFoundPathsAreBelowTheRoots: what find hands over is somewhere below its roots, and
// a root itself unless a test excludes it.
func TestFoundPathsAreBelowTheRoots(t *testing.T) {
	for script, want := range map[string]string{
		`find src -name '*.o' -exec rm {} \;`:                          "src/?",
		`find src -type f -exec rm -f {} +`:                            "src src/?",
		`find . -type f -name '*.bak' -exec rm {} \;`:                  "./?",
		`find . -exec chmod 644 {} \;`:                                 ". ./?",
		`find ./ -mindepth 1 -exec rm -r {} +`:                         "./?",
		`find a b -iname '*.TMP' -print0 | xargs -0 rm`:                "a/? b/?",
		`find /var/log -name '*.gz' | xargs rm`:                        "/var/log/?",
		`find src/*/out -name x -exec rm {} \;`:                        "src/*/out src/?",
		`find src -name '*.c' -exec cp {} {}.orig \;`:                  "src/?",
		`find src -name '*.c' | sort | head -n 3 | xargs -I% touch %`:  "src/?",
		`find src -name '*.c' | while read -r f; do rm "$f"; done`:     "src/?",
		`find src -name '*.c' | while read f; do rm "${f}x"; done`:     "src/?",
		`for f in $(find src -name '*.c'); do touch $f.d; done`:        "src/?",
		"rm `find src -name '*.c'`":                                    "src/?",
		`cd lib && find src -name '*.c' -exec rm {} \;`:                "lib/src/?",
		`find src -name '*.c' -execdir rm {} \;`:                       "./? src/?",
		`find src -name '*.c' -execdir touch mark \;`:                  "mark src/? src/mark",
		`find src -name '*.c' -exec mv -t old {} +`:                    "old/? src/?",
		`find src ! -name '*.c' -exec rm {} \;`:                        "src src/?",
		`find src -name '*.c' -o -name '*.h' -exec rm {} \;`:           "src src/?",
		`find src -name '*.c' 2>/dev/null | sudo xargs rm`:             "src/?",
		`find src -name '*.c' -exec sh -c 'rm made' \;`:                "made",
		`find src -name '*.c' | grep -v test | xargs -n 1 -P 4 rm -fv`: "src/?",
	} {
		f := Parse(script, "")
		if got := strings.Join(sorted(f.Writes), " "); f.Dynamic || f.Opaque || got != want {
			t.Errorf("%q: writes %q, want %q; dynamic %v %v", script, got, want, f.Dynamic, f.Reasons)
		}
	}
}

// TestFoundPathsThatAreNotKnown: where more than whole paths below the roots can be handed
// over, the script stays dynamic.
func TestFoundPathsThatAreNotKnown(t *testing.T) {
	for _, script := range []string{
		`find . -exec sh -c 'rm {}' \;`, `find . -exec {} \;`, `find . -printf '%f\n' | xargs rm`, `find . -name x | cut -c2- | xargs rm`, `find . -name x | xargs -d / rm`,
		`find . -name x | xargs -d . cat`, `find . -name x | { read -n1 c; xargs rm; }`, `f() { read -n1 c; xargs rm; }; find . | f`, `find . | head -c 5 | xargs rm`, `find . -name x 2>&1 | xargs rm`,
		`find . -exec cat {} \; | xargs rm`, `find "$x" -delete`, `find . -name $x`, `find . -exec grep "$x" -delete ';'`, `find . -name *`, `find . | xargs -a list rm`, `find . | xargs sh -c 'rm $1' x`,
		`find . | xargs -I{} sh -c 'rm {}'`, `find . | while read -n 3 f; do rm $f; done`, `find . | while read f; do f=/etc/x; rm $f; done`, `find . | while read -d x f; do rm $f; done`,
		`find . | xargs -I{} curl {}`, `find . -name x | grep -o . | xargs rm`, `find . | bash -c 'read -n1 c; xargs rm'`, `find . -name '*.c' | xargs eval`, `find . -exec rm "$x" {} +`,
		`find() { echo /etc/x; }; rm $(find .)`, `find . < list | xargs -d, rm`, `xargs rm`, `cat list | xargs rm`, `echo $(cat list) | xargs touch`, `find . | sed 's/.//' | xargs rm`,
	} {
		if f := Parse(script, ""); !f.Dynamic && !f.Opaque {
			t.Errorf("%q is called exact: %v, writes %v", script, names(f), f.Writes)
		}
	}
}

// TestSplitNamesAreNoted: without a NUL behind each name, one with a space in it becomes
// several.
func TestSplitNamesAreNoted(t *testing.T) {
	for script, split := range map[string]bool{
		`find src -name x -print0 | xargs -0 rm`:                                  false,
		`find src -name x | xargs rm`:                                             true,
		`find src -name x -print0 | while IFS= read -r -d '' f; do rm "$f"; done`: false,
		`find src -name x | while read f; do rm "$f"; done`:                       true,
		`rm $(find src -name x)`:                                                  true,
	} {
		if f := Parse(script, ""); f.Dynamic || slices.Contains(f.Resplit, "src/?") != split {
			t.Errorf("%q: split %v, want %v; %v", script, f.Resplit, split, f.Reasons)
		}
	}
}

// TestTheScriptMakesNames: a pattern may stand for an option that the script has made a
// file of.
func TestTheScriptMakesNames(t *testing.T) {
	for script, want := range map[string]bool{
		"touch -- -rf; rm *": true, "> ./-rf; rm *": true, "mkdir ./-r && ls ?r": true, "rm *.o; touch a": false, "touch -- -rf; rm src/*": false, "tar xf a.tar && rm *": true,
		"tar xf a.tar && rm -r src": false, "touch 'a b'; find . -name 'a*' | xargs rm": true, "touch 'a b'; find . -name 'a*' -print0 | xargs -0 rm": false, "touch x; for f in *; do rm \"$f\"; done": false,
		"> -n; for f in *; do cat \"$f\"; done": true,
	} {
		if f := Parse(script, ""); f.Dynamic != want {
			t.Errorf("%q: dynamic %v, want %v: %v", script, f.Dynamic, want, f.Reasons)
		}
	}
}

// TestNumbersInPaths: a number leads nowhere else.
func TestNumbersInPaths(t *testing.T) {
	for script, want := range map[string]string{
		"touch out-$$.log": "./?", "echo x > logs/run.$((1+1))": "logs/?", "rm -f tmp/$#/x": "tmp/?", "touch a$?/../../x": Unknown, "touch \"$x$?\"": Unknown,
	} {
		f := Parse(script, "")
		if got := strings.Join(f.Writes, " "); got != want || f.Dynamic != (want == Unknown) {
			t.Errorf("%q: writes %q, want %q: %v", script, got, want, f.Reasons)
		}
	}
}
