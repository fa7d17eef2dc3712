package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFloodOfWarningsHidesNoError(t *testing.T) {
	var f Findings
	for i := range 40 {
		f = append(f, Finding{Severity: Warning, Position: Position{"f.yaml", i + 1, 1}, Message: "w"})
	}
	f = append(f, Finding{Severity: Error, Position: Position{"f.yaml", 99, 1}, Message: "e"})
	var b strings.Builder
	if err := f.Write(&b, 3); err != nil {
		t.Fatal(err)
	}
	want := "warning: f.yaml:1:1: w\nwarning: f.yaml:2:1: w\nerror: f.yaml:99:1: e\nand 38 more: agentctl validate prints all\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if e, w := f.Count(); e != 1 || w != 40 {
		t.Errorf("Count = %d, %d", e, w)
	}
}

func TestSortKeepsTheOrderOfOnePlace(t *testing.T) {
	at := func(file string, line, col int, m string) Finding {
		return Finding{Position: Position{file, line, col}, Message: m}
	}
	f := Findings{at("b", 1, 1, "5"), at("a", 2, 9, "3"), at("a", 2, 9, "4"), at("a", 2, 1, "2"), at("a", 1, 7, "1")}
	f.Sort()
	got := ""
	for _, x := range f {
		got += x.Message
	}
	if got != "12345" {
		t.Errorf("order %s", got)
	}
}

func TestTheCaretStandsUnderThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		reason, line string
		col, want    int
	}{
		"plain":     {"one column for one letter", "  name: x", 9, 8},
		"wide":      {"an ideograph is two columns wide", "日本: x", 5, 6},
		"combining": {"a combining mark has no width", "e\u0301: x", 5, 3},
		"tab":       {"a tab is shown as two blanks", "\tname: x", 2, 2},
		"escape":    {"an escape is shown in six columns", "\u202ea: x", 2, 6},
		"beyond":    {"a column behind the end is the end", "abc", 9, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := snippet(cut(c.line, c.col)); got != c.want {
				t.Errorf("%s: caret after %d columns, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestALongLineIsCutAroundThePlace(t *testing.T) {
	line := strings.Repeat("a", 5000) + "X" + strings.Repeat("b", 5000)
	text, caret := snippet(cut(line, 5001))
	if columns(text) > snippetWidth+1 || []rune(text)[caret] != 'X' {
		t.Errorf("caret %d in %q", caret, text)
	}
}

func TestSanitizeShowsWhatHides(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 日本":       "plain äöü 日本",
		"\x1b[31mred":        `\u001b[31mred`,
		"a\u202eb\u2066":     `a\u202eb\u2066`,
		"zero\u200bwidth":    `zero\u200bwidth`,
		"\ufeffbom":          `\ufeffbom`,
		"tag\U000E0041":      `tag\U000e0041`,
		"csi\u009b31m":       `csi\u009b31m`,
		"line\u2028break\n":  `line\u2028break\u000a`,
		"del\x7f":            `del\u007f`,
		"bad\xffbytes":       "bad\ufffdbytes",
		"private\ue000":      `private\ue000`,
		"tab\there":          "tab  here",
		"variation\ufe0f ok": "variation\ufe0f ok",
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFindingsAboutNoFileHaveNoPlace(t *testing.T) {
	var b strings.Builder
	if err := (Findings{{Severity: Error, Message: "stopped"}}).Write(&b, 0); err != nil || b.String() != "error: stopped\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestWriteReportsThatItFailed(t *testing.T) {
	if err := (Findings{{Message: "x"}}).Write(full{}, 0); err == nil {
		t.Error("no error")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestSuggestions(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"bsh", `did you mean "bash"?`},
		{"Bash", `did you mean "bash"?`},
		{"gerp", `did you mean "grep"?`},
		{"b", ""},
		{"", ""},
		{"completely", ""},
		{"bash", ""},
	} {
		if got := Suggest(c.name, []string{"bash", "grep", "read"}); got != c.want {
			t.Errorf("Suggest(%q) = %s", c.name, got)
		}
	}
}

func TestHintsGoAsDeepAsTheSchema(t *testing.T) {
	for path, want := range map[string]string{
		"":                          "agent",
		"spec.tools[1].name":        "agent.spec.tools",
		"spec.limits.timeout":       "agent.spec.limits.timeout",
		"spec.nothing":              "agent.spec",
		"metadata.labels.team":      "agent.metadata.labels",
		"spec.inputs.schema.type.x": "agent.spec.inputs.schema",
	} {
		if got := fieldPath("Agent", path); got != want {
			t.Errorf("fieldPath(%q) = %s, want %s", path, got, want)
		}
	}
	if got := fieldPath("Nothing", "spec"); got != "nothing" {
		t.Error(got)
	}
}
