package display

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/pluginkit"
)

func tried() PluginTest {
	return PluginTest{Command: "./greet", Report: &pluginkit.Report{
		Program: "/bin/greet", Tools: []string{"greet", "wave\x1b[2J"}, Passed: 1, Failed: 1, Skipped: 1,
		Checks: []pluginkit.Check{
			{Name: "handshake", Promise: "it starts", Outcome: "passed", DurationMicros: 12_000},
			{Name: "panic", Promise: "it lives on", Outcome: "failed", Problem: "it died:\n  | \x1b[31mboom <&>", Mend: "catch it", DurationMicros: 2_000_000},
			{Name: "stdin", Promise: "it is empty", Outcome: "skipped", Problem: "no probe"},
		},
	}}
}

func plain(string) string { return "" }

func TestATestOfAProgramIsReadable(t *testing.T) {
	var b bytes.Buffer
	if err := tried().WriteText(NewScreen(&b, ColorNever, plain)); err != nil {
		t.Fatal(err)
	}
	want := `ok    handshake  12ms
FAIL  panic      2.0s
      expected  it lives on
      instead   it died:
                | <U+001B>[31mboom <&>
      to fix    catch it
skip  stdin      <0.1ms
      no probe
./greet (greet, wave<U+001B>[2J): 1 passed, 1 failed, 1 skipped
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATestOfAProgramIsJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := tried().WriteJUnit(NewScreen(&b, ColorNever, plain)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<testsuites tests="3" failures="1">`, `<testsuite name="plugin/greet" tests="3" failures="1" skipped="1" time="2.012000">`,
		`<testcase name="panic" classname="plugin/greet" file="./greet" time="2.000000">`, `<failure message="it died: | &lt;U+001B&gt;[31mboom &lt;&amp;&gt;">`, `<skipped message="no probe">`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestAnAnswerAndWhatIsWrongWithItAreApart(t *testing.T) {
	code := 3
	for name, c := range map[string]struct {
		answer   pluginkit.Answer
		out, err string
	}{
		"well":    {pluginkit.Answer{Output: "hello"}, "hello\n", ""},
		"files":   {pluginkit.Answer{Output: "hello", Attachments: []pluginkit.Attached{{Name: "a.png", Size: 7, Wrong: "it is text/plain"}}}, "hello\n", "attached a.png, 7 bytes, which no model is shown: it is text/plain\n"},
		"nothing": {pluginkit.Answer{}, "", ""},
		"badly":   {pluginkit.Answer{Output: "no\n", Error: "tool", ExitCode: &code, Dropped: 7}, "no\n", "error: tool, exit code 3, 7 bytes of output were not kept\n"},
		"killed":  {pluginkit.Answer{Error: "timeout", Signal: "killed"}, "", "error: timeout, ended by signal killed\n"},
	} {
		var out, errs bytes.Buffer
		if err := PluginAnswer(NewScreen(&out, ColorNever, plain), NewScreen(&errs, ColorNever, plain), &c.answer); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.out || errs.String() != c.err {
			t.Errorf("%s: stdout %q, stderr %q, want %q and %q", name, out.String(), errs.String(), c.out, c.err)
		}
	}
}

func TestBegunNamesWhatToReadFirst(t *testing.T) {
	var b bytes.Buffer
	if err := Begun(NewScreen(&b, ColorNever, plain), []string{"x/main.go", "x/README.md"}); err != nil {
		t.Fatal(err)
	}
	if want := "x/main.go\nx/README.md\nnext: x/README.md says how to build, call and test it\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if err := Begun(NewScreen(&b, ColorNever, plain), nil); err != nil {
		t.Error(err)
	}
}
