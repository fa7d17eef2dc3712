package display

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// foreign puts what steers a terminal into every text of a value: a journal, a
// cassette or a control plane may be anybody's.
func foreign(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x\x1b]0;title\a\x1b[2J\u009b31m\u202e\r\n\by")
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		foreign(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				foreign(field)
			}
		}
	}
}

func TestNoFieldOfAnEventSteersATerminal(t *testing.T) {
	for _, p := range event.Payloads() {
		v := reflect.New(reflect.TypeOf(p))
		foreign(v.Elem())
		d, ok := reflect.TypeAssert[event.Payload](v.Elem())
		if !ok {
			t.Fatalf("%T", p)
		}
		var b bytes.Buffer
		if err := EventLine(plainScreen(&b), event.Event{Run: "r", Call: "x\x1b[2J", Data: d}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); Clean(got) != got || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: %q", p.Type(), got)
		}
	}
}

func TestNoFieldOfACallSteersATerminal(t *testing.T) {
	var c message.ToolPart
	var a message.Answer
	foreign(reflect.ValueOf(&c).Elem())
	foreign(reflect.ValueOf(&a).Elem())
	for name, change := range map[string]func(){
		"every field":              func() {},
		"without words of its own": func() { c.Result.Title = "" },
		"one that was denied":      func() { c.Decision.Action = message.Deny },
		"one that was asked":       func() { c.Decision.Action = message.Ask },
		"one that was redacted":    func() { c.Decision.Action = message.Redact },
		"one that was approved":    func() { c.Approval = message.Approved },
		"one with an exit code":    func() { c.Result.Code = "" },
	} {
		change()
		line := callLine(plainScreen(&strings.Builder{}), &c, a, "")
		if got := Clean(line); got != line || strings.Count(strings.TrimSuffix(line, "\n"), "\n") > 0 {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// TestNoFieldOfARunSteersATerminal shows the run of each archive with each text
// of its events in turn made foreign.
func TestNoFieldOfARunSteersATerminal(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	shown := 0
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(section(archive, "past.jsonl")+section(archive, "events.jsonl"), "\n")
		for i, line := range lines {
			for _, m := range anyText.FindAllStringIndex(line, -1) {
				changed := slices.Clone(lines)
				changed[i] = line[:m[1]-1] + `\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\b\r` + line[m[1]-1:]
				out, ok := showRun(t, strings.Join(changed, ""))
				if !ok {
					continue // such an event is refused
				}
				shown++
				if Clean(out) != out {
					t.Errorf("%s, %s %q", path, changed[i], out)
				}
			}
		}
	}
	if shown < 500 {
		t.Errorf("%d runs shown: the others were refused", shown)
	}
}

// anyText finds the values that are texts.
var anyText = regexp.MustCompile(`: ?"(?:[^"\\]|\\.)*"`)

// showRun shows a run on a terminal; false: it is no run.
func showRun(t *testing.T, lines string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	screen := &Screen{w: &out, TTY: true}
	run, shown := &view.Run{}, NewRun(FormatText, screen, screen, RunOptions{})
	for line := range strings.Lines(lines) {
		var e event.Event
		if e.UnmarshalJSON([]byte(line)) != nil || run.Apply(e) != nil {
			return "", false
		}
		shown.Event(e)
	}
	if err := shown.Finish(run, "/state/runs/r1"); err != nil {
		t.Fatal(err)
	}
	return out.String(), true
}

// TestAFirstLineNeverStandsForACommand: a comment that ends in a backslash, or a
// harmless first line, must not be all that a person sees.
func TestAFirstLineNeverStandsForACommand(t *testing.T) {
	command := "git log # x \\\nrm -rf y\nmake " + strings.Repeat("z", 200)
	input, err := json.Marshal(map[string]string{"command": command, "description": "looks harmless"})
	if err != nil {
		t.Fatal(err)
	}
	c := &message.ToolPart{
		Tool: "bash", Input: input, State: message.StateCompleted, Decision: &message.Decision{Action: message.Deny, Rule: "p/a-rule-with-a-long-name", Risk: "R2"},
		Result: &message.ToolResult{Title: "git log # x \\"},
	} // as older versions have written it
	question := event.Event{Run: "r", Call: "c", Data: event.ApprovalRequested{Tool: "bash"}}
	for _, width := range []int{0, 40, 80, 200} {
		s := &Screen{w: &strings.Builder{}, columns: func() int { return width }}
		var events strings.Builder
		if err := EventLine(&Screen{w: &events, columns: s.columns}, event.Event{Seq: 1, Call: "c", Data: event.ToolCall{Tool: "bash", Args: input}}); err != nil {
			t.Fatal(err)
		}
		for what, line := range map[string]string{
			"call": callLine(s, c, message.Answer{}, ""), "event": events.String(), "question": asked(s, question, Place{}, title(c), event.ApprovalRequested{Tool: "bash"}),
		} {
			if !strings.Contains(line, "… (+2 lines)") {
				t.Errorf("%s, %d columns: %q", what, width, line)
			}
		}
	}
	// A command cannot claim to end where it does not, and a long claim is cut.
	for _, text := range []string{"ls … (+1 line) ; rm -rf " + strings.Repeat("y", 100), "ls" + strings.Repeat(" … (+1 line)", 30)} {
		if got := fit(text, 40); ansi.StringWidth(got) > 40 {
			t.Errorf("fit is %d cells wide: %q", ansi.StringWidth(got), got)
		}
	}
}

// TestANarrowTerminalKeepsTheReason: what a policy or a person said against a call is
// the part of its line that must not be cut.
func TestANarrowTerminalKeepsTheReason(t *testing.T) {
	const words = "this file stays as it is"
	c := &message.ToolPart{
		Tool: "edit", Input: []byte(`{"path":"a/rather/long/path/of/the/workspace/keep.txt"}`), State: message.StateError,
		Decision: &message.Decision{Action: message.Deny, Rule: "p/keep", Risk: "R1", Message: words},
		Result:   &message.ToolResult{Code: message.CodeDenied, Text: "denied"},
	}
	for _, width := range []int{0, 40, 60, 80, 200} {
		s := &Screen{w: &strings.Builder{}, columns: func() int { return width }}
		line := callLine(s, c, message.Answer{}, "")
		if text := strings.Join(strings.Fields(line), " "); !strings.Contains(text, words) || !strings.Contains(text, "p/keep") {
			t.Errorf("%d columns: the reason is cut: %q", width, line)
		}
		for l := range strings.Lines(line) {
			if n := ansi.StringWidth(strings.TrimRight(l, "\n")); width > 0 && n > width {
				t.Errorf("%d columns: a line of %d: %q", width, n, l)
			}
		}
	}
}
