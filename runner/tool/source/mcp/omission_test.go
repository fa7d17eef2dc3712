package mcp

import (
	"bytes"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/tool"
)

// omissions collects what is left out of the functions of a bed.
func omissions(all *[][]tool.Omission) func(*tool.PoolOptions) {
	return func(o *tool.PoolOptions) {
		o.LeftOut = func(_ string, left []tool.Omission) { *all = append(*all, left) }
	}
}

func TestWhatIsLeftOutIsReported(t *testing.T) {
	for mode, want := range map[string]string{
		"lying":   `"list" (its schema cannot be checked: |"text" (its schema cannot be checked: |"broken" (its schema cannot be checked: |"far" (its schema cannot be checked: `,
		"control": `"a<U+001B>[2Jb" (its name holds characters that are not shown)`,
		"twofold": ``,
	} {
		state := t.TempDir()
		for _, when := range []string{"asked", "kept"} { // the second run begins with what the first has kept
			var all [][]tool.Omission
			b := newBed(t, state, mode, omissions(&all))
			b.functions()
			if len(all) != 1 {
				t.Fatalf("%s, %s: reported %d times", mode, when, len(all))
			}
			got := tool.Omitted(all[0])
			for part := range strings.SplitSeq(want, "|") {
				if !strings.Contains(got, part) || want == "" && got != "" {
					t.Errorf("%s, %s: %q is not in %q", mode, when, part, got)
				}
			}
		}
	}
}

// A server that knows a secret must not have it sent to a model, or kept on a disk, by
// describing itself with it.
func TestADescriptionWithASecretIsNeitherOfferedNorKept(t *testing.T) {
	var all [][]tool.Omission
	b := newBed(t, "", "control", omissions(&all), func(o *tool.PoolOptions) {
		o.Reveals = func(text []byte) bool { return bytes.Contains(text, []byte("line")) }
	})
	if found, err := b.pool.Several(t.Context(), &b.def, ""); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if got := tool.Omitted(all[0]); !strings.Contains(got, "its description holds a secret of the run") || strings.Contains(got, "ok") {
		t.Error(got)
	}
}

func TestOmissionsAreBoundedAndHarmless(t *testing.T) {
	all := make([]tool.Omission, 300)
	for i := range all {
		all[i] = tool.Omission{Name: strings.Repeat("\x1b]0;n\xff", 100), Why: strings.Repeat("w\n", 5000)}
	}
	got := tool.Omitted(all)
	if len(got) > 8<<10 || strings.ContainsAny(got, "\x1b\n") || !strings.HasSuffix(got, "; and 290 more") {
		t.Errorf("%d bytes: %.200q", len(got), got)
	}
}
