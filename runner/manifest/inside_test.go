package manifest

import (
	"fmt"
	"testing"
)

func TestPlacesInsideTexts(t *testing.T) {
	set, found := load(t, `apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
  rules:
  - name: plain
    when: cmd.dynamic
    action: ask
  - name: single
    when: 'cmd.dynamic'
    action: ask
  - name: double
    when: "a\tb"
    action: ask
  - name: literal
    when: |
      first &&
        second
    action: ask
  - name: folded
    when: >
      first
      second
    action: ask
  - name: spread
    when: first
      second
    action: ask
`)
	if len(found) > 0 {
		t.Fatal(messages(found))
	}
	d := set.Documents[0]
	for _, c := range []struct {
		reason          string
		rule, line, col int
		want            string
	}{
		{"a plain text reads as it is written", 0, 1, 5, "7:15"},
		{"a quote takes a column", 1, 1, 5, "10:16"},
		{"behind an escape columns are not those of the text", 2, 1, 3, "13:11"},
		{"a block begins on the next line", 3, 1, 7, "17:13"},
		{"and keeps its inner indent", 3, 2, 3, "18:9"},
		{"a folded text has other lines", 4, 1, 7, "21:11"},
		{"so has a plain one over two lines", 5, 1, 7, "26:11"},
		{"a line that does not exist", 0, 9, 1, "7:11"},
		{"no place at all", 0, 0, 0, "7:11"},
		{"a field that does not exist", 9, 1, 1, "5:3"},
	} {
		p := d.LocateInside(fmt.Sprintf("spec.rules[%d].when", c.rule), c.line, c.col)
		if got := fmt.Sprintf("%d:%d", p.Line, p.Col); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
