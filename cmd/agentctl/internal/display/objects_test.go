package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestObjectTableKeepsItsColumnsAndObeysNothing(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{w: &out}
	table := &ObjectTable{
		Columns: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Steps"}, {Name: "Extra", Priority: 1}, {Name: "Age"}},
		Rows: []Row{
			{Cells: []any{"a-long-name", 7.0, "x", "3m"}, Labels: map[string]string{"b": "2", "a": "1"}, Namespace: "n"},
			{Cells: []any{"b\x1b[31m\nc", 1.5, nil, nil}, Namespace: "m"},
			{Cells: []any{"short"}},
		},
		Namespaces: true, Labels: true,
	}
	if err := table.Write(s); err != nil {
		t.Fatal(err)
	}
	table.NoHeaders, table.Wide, table.Rows = true, false, []Row{{Cells: []any{"z", true, "x", "1s"}, Namespace: "n"}}
	if err := table.Write(s); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE  NAME             STEPS  AGE  LABELS
n          a-long-name      7      3m   a=1,b=2
m          b<U+001B>[31m c  1.5    -    -
           short            -
n          z                true   1s   -
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestForeignTextIsCleanedOnATerminalOnly(t *testing.T) {
	const text = "a\x1b[2Jb\u202ec"
	for _, tty := range []bool{false, true} {
		var out bytes.Buffer
		if err := Foreign(&Screen{w: &out, TTY: tty}, text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "\x1b"); got == tty {
			t.Errorf("terminal %v: %q", tty, out.String())
		}
	}
}

func TestDescriptionTellsAllAndConditionsLast(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := &Description{
		Kind: "Agent", APIVersion: "v1", Name: "a", Namespace: "n", Created: now.Add(-time.Hour), Now: now,
		Deleting: true, Finalizers: []string{"x/y"},
		Spec: map[string]any{"text": "one\ntwo", "list": []any{map[string]any{"k": int64(1)}, "s"}, "none": map[string]any{}, "no": []any{}, "empty": ""},
		Conditions: []DescribedCondition{
			{Type: "Ready", Status: "False", Reason: "ReferenceNotFound", Message: "no model", Since: now.Add(-time.Minute)},
			{Type: "Old", Status: "True", Old: true},
		},
	}
	if err := d.Write(&Screen{w: &out}); err != nil {
		t.Fatal(err)
	}
	want := `Name:         a
Namespace:    n
Kind:         Agent  (v1)
Labels:       -
Annotations:  -
Created:      2026-01-02T02:04:05Z  (60m ago)
Deleting:     waits for x/y
Spec:
  empty: -
  list:
    - k: 1
    - s
  no: []
  none: {}
  text:
    one
    two
Status:  none
Conditions:
  TYPE   STATUS  REASON             SINCE  MESSAGE
  Ready  False   ReferenceNotFound  60s    no model
  Old    True    -                  -      (of an earlier state)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDescriptionEndsWithEvents(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		reason string
		events []DescribedEvent
		want   string
	}{
		"unknown": {"a server without events has nothing to say of them", nil, "Conditions:  none\n"},
		"none":    {"nothing happened", []DescribedEvent{}, "Conditions:  none\nEvents:  none\n"},
		"some": {"what happened several times says so", []DescribedEvent{
			{Type: "Warning", Reason: "ToolError", Source: "run-controller", Message: "a\x1b[2Jb\nc", First: now.Add(-time.Hour), Last: now.Add(-time.Minute), Count: 3},
			{Type: "Normal", Reason: "Accepted", First: now.Add(-time.Second), Last: now.Add(-time.Second), Count: 1},
		}, `Conditions:  none
Events:
  TYPE     REASON     AGE                FROM            MESSAGE
  Warning  ToolError  60s (x3 over 60m)  run-controller  a<U+001B>[2Jb c
  Normal   Accepted   1s                 -               -
`},
	} {
		var out bytes.Buffer
		d := &Description{Kind: "Agent", Name: "a", Now: now, Events: c.events}
		if err := d.Write(&Screen{w: &out}); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(out.String(), "Conditions:")
		if diff := cmp.Diff(c.want, "Conditions:"+got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

func TestObjectDiffIsEmptyForTheSame(t *testing.T) {
	a := map[string]any{"a": int64(1)}
	same, err := ObjectDiff("x", "y", a, map[string]any{"a": 1.0})
	if err != nil || same != "" {
		t.Errorf("got %q, %v", same, err)
	}
	made, err := ObjectDiff("x", "y", nil, a)
	if err != nil || !strings.Contains(made, "+a: 1") {
		t.Errorf("got %q, %v", made, err)
	}
	var out bytes.Buffer
	if err := WriteDiff(&Screen{w: &out, Color: true}, made); err != nil || !strings.Contains(out.String(), "\x1b[32m+a: 1\x1b[0m") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestYAMLHoldsEveryText(t *testing.T) {
	var all []string
	for _, r := range []rune{0, 7, 0x1b, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xa0, 0x2028, 0x202e, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1f600, 0x10ffff} {
		all = append(all, "a"+string(r)+"b\n"+string(r))
	}
	text, err := YAML(map[string]any{"all": all})
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		All []string `json:"all"`
	}
	if err := yaml.Unmarshal(text, &back); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if d := cmp.Diff(all, back.All); d != "" {
		t.Error(d)
	}
}
