package shell

import (
	"strings"
	"testing"
)

// TestBadInput: scripts that nobody writes by hand are judged, in a time that grows with
// their length, and what cannot be read is not called exact.
func TestBadInput(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		exact  bool
	}{
		"words":         {"echo" + strings.Repeat(" w", 10_000), true},
		"NUL":           {"ls\x00rm x", false},
		"CRLF":          {"ls\r\nrm x\r\n", false},
		"control":       {"rm \x01/x", false},
		"control in $'": {`rm $'\x01/x'`, false},
		"not UTF-8":     {"rm \xff\xfe", false},
		"lone half":     {"rm \xed\xa0\x80", false},
		"too long":      {strings.Repeat("$(", 1_000_000), false},
		"searches":      {strings.Repeat("rm $(find ", 60) + strings.Repeat(")", 60), false},
		"filters":       {"find . " + strings.Repeat("| sort ", 10_000) + "| xargs rm", false},
		"loops":         {strings.Repeat("find . | while read f; do ", 60) + "ls" + strings.Repeat("; done", 60), false},
		"roots":         {"find" + strings.Repeat(" src", 2000) + ` -exec ls {} \;`, true},
	} {
		if f := Parse(tc.script, ""); (f.Dynamic || f.Opaque) == tc.exact {
			t.Errorf("%s: exact %v, want %v: %v", name, !tc.exact, tc.exact, f.Reasons)
		}
	}
}
