package shell

import (
	"slices"
	"testing"
)

// TestWhatBashReadsInAnotherWayIsSeen: in each of these scripts bash runs rm, and the
// parser alone would not see it.
func TestWhatBashReadsInAnotherWayIsSeen(t *testing.T) {
	tests := map[string]string{
		"ls # note \\\nrm x":                   "a comment ends with its line",
		"ls # a \\\n# b \\\nrm x":              "two comments",
		"ls #\\\nrm x":                         "nothing but the backslash",
		"for i in a; do # x \\\nrm x\ndone":    "inside of a loop",
		"if : # x \\\nthen rm x; fi":           "behind a condition",
		"case a in # x \\\na) rm x;; esac":     "between the items of a case",
		"a=(1 # x \\\n$(rm x))":                "inside of an array",
		"f() { # x \\\nrm x\n}; f":             "inside of a function",
		"echo `ls # x \\\nrm x`":               "inside of backquotes",
		"cat <<E # x \\\nE\nrm x":              "behind a here-document",
		"ls | # x \\\nrm x":                    "behind a pipe",
		"ls && # x \\\nrm x":                   "behind an operator",
		"bash -c 'ls # x \\\nrm x'":            "in a script of its own",
		"let 1&&rm x":                          "let ends at an operator",
		"let 1||rm x":                          "also at this one",
		"let 0;let 1&rm x":                     "and at this one",
		"time -- rm x":                         "-- ends the options of time",
		"time -p -- rm x":                      "also behind an option",
		"time -- A=1 rm x":                     "an assignment may follow",
		"coproc A=1 rm x; wait":                "an assignment is not the name",
		"coproc 2>/dev/null rm x; wait":        "a redirection is not the name",
		"coproc rm 2>f x; wait":                "a redirection ends no name",
		"coproc rm >f; wait":                   "also behind the only word",
		"coproc rm x; wait":                    "a simple command has no name",
		"(( 1 )) # x \\\n&& rm x || rm x":      "",
		"while # x \\\n! :; do :; done; rm x":  "",
		"let i=1; let i+=1; let i==2&&rm x":    "several in one script",
		"{ # x \\\nrm x; }":                    "inside of a group",
		"( # x \\\nrm x )":                     "inside of a subshell",
		"x=$( # x \\\nrm x )":                  "inside of a substitution",
		"[[ a == a ]] # x \\\nrm x":            "behind a test",
		"case a in a) : ;; # x \\\nesac\nrm x": "behind an item",
	}
	for script, reason := range tests {
		f := Parse(script, "")
		if !slices.Contains(names(f), "rm") && !f.Dynamic {
			t.Errorf("%q (%s): %v, known", script, reason, names(f))
		}
	}
	// Text that looks alike must not make a script unknown.
	for _, script := range []string{"echo 'a # b \\\nc'", "sed 's#a#b#' \\\n  f", "echo a#b \\\nc", "cat <<'E'\n# x \\\nrm x\nE", "echo \"# \\\n\"", "ls # x\nls", "ls # \\x\nls"} {
		if f := Parse(script, ""); f.Dynamic || slices.Contains(names(f), "rm") {
			t.Errorf("%q: %v, dynamic %t %q", script, names(f), f.Dynamic, f.Reasons)
		}
	}
}
