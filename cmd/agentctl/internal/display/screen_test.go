package display

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

func TestColourFollowsFlagThenEnvironment(t *testing.T) {
	cases := map[string]struct {
		reason string
		mode   string
		env    map[string]string
		live   bool
		want   bool
	}{
		"always":      {"a flag beats the environment", ColorAlways, map[string]string{"NO_COLOR": "1"}, false, true},
		"never":       {"a flag beats the environment", ColorNever, map[string]string{"CLICOLOR_FORCE": "1"}, true, false},
		"terminal":    {"a terminal shows colours", ColorAuto, nil, true, true},
		"pipe":        {"a pipe gets none", ColorAuto, nil, false, false},
		"NO_COLOR":    {"the person wants none", ColorAuto, map[string]string{"NO_COLOR": "1"}, true, false},
		"empty":       {"an empty NO_COLOR is none", ColorAuto, map[string]string{"NO_COLOR": ""}, true, true},
		"forced":      {"a CI log shows colours", ColorAuto, map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		"forced off":  {"0 forces nothing", ColorAuto, map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		"contradicts": {"NO_COLOR is the stronger wish", ColorAuto, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := useColor(c.mode, c.live, func(k string) string { return c.env[k] }); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
		})
	}
}

func TestScreenOfABufferIsNoTerminal(t *testing.T) {
	s := NewScreen(&bytes.Buffer{}, ColorAuto, func(string) string { return "" })
	if s.TTY || s.Live || s.Color || s.width() != 0 {
		t.Errorf("got %+v", s)
	}
}

var errFull = errors.New("disk full")

// failing takes a number of writes and fails then.
type failing struct{ writes int }

func (f *failing) Write(b []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFirstFailedWriteIsKept(t *testing.T) {
	s := &Screen{w: &failing{writes: 1}}
	s.print("a")
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	s.print("b")
	if _, err := s.Write([]byte("c")); !errors.Is(err, errFull) || !errors.Is(s.Err(), errFull) {
		t.Errorf("got %v and %v", err, s.Err())
	}
}

func TestBrokenStdoutIsToldOnce(t *testing.T) {
	told := 0
	shown := NewRun(FormatJSONL, &Screen{w: &failing{writes: 1}}, &Screen{w: &bytes.Buffer{}}, RunOptions{
		Broken: func(err error) {
			told++
			if !errors.Is(err, errFull) {
				t.Errorf("got %v", err)
			}
		},
	})
	for i := range 4 {
		shown.Event(event.Event{Seq: int64(i + 1), Data: event.StepStart{Step: 1}})
	}
	if err := shown.Finish(&view.Run{}, ""); told != 1 || !errors.Is(err, errFull) {
		t.Errorf("told %d times, Finish says %v", told, err)
	}
}

func TestAnswerThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON} {
		shown := NewRun(format, &Screen{w: &failing{}}, &Screen{w: &bytes.Buffer{}}, RunOptions{})
		run := &view.Run{Finished: &event.RunFinished{Phase: view.Succeeded, Output: "a"}}
		if err := shown.Finish(run, ""); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

// TestStreamWritesAtMostEvery30ms feeds 100 letters, one a millisecond.
func TestStreamWritesAtMostEvery30ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes []string
		var at []time.Duration
		counter := writerFunc(func(b []byte) (int, error) {
			writes = append(writes, string(b))
			at = append(at, time.Duration(time.Now().UnixNano()))
			return len(b), nil
		})
		shown := NewRun(FormatText, &Screen{w: &bytes.Buffer{}}, &Screen{w: counter, TTY: true}, RunOptions{Past: begun(t)})
		tell := func(p event.Payload) {
			shown.Event(event.Event{Message: "m", Part: "p", Data: p})
		}
		shown.Event(event.Event{Message: "m", Data: event.ModelRequest{Step: 1}})
		tell(event.TextStart{})
		for i := range 100 {
			tell(event.TextDelta{Text: fmt.Sprint(i % 10)})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second) // no further piece: the timer has to show the last ones
		synctest.Wait()
		if got, want := strings.Join(writes, ""), strings.Repeat("0123456789", 10); got != want {
			t.Errorf("got %q", got)
		}
		if len(writes) > 5 {
			t.Errorf("%d writes for 100 pieces in 100 ms", len(writes))
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < every {
				t.Errorf("writes %s apart", at[i]-at[i-1])
			}
		}
		if err := shown.Finish(&view.Run{Finished: &event.RunFinished{Phase: view.Succeeded}}, ""); err != nil {
			t.Error(err)
		}
	})
}

// begun is a run of which nothing but its begin was told.
func begun(t *testing.T) *view.Run {
	t.Helper()
	run := &view.Run{}
	if err := run.Apply(event.Event{Seq: 1, Run: "r", Message: "u", Data: event.RunStarted{Agent: "a"}}); err != nil {
		t.Fatal(err)
	}
	return run
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestNoticeIsALine(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON, FormatJSONL} {
		var stdout, stderr bytes.Buffer
		NewRun(format, &Screen{w: &stdout}, &Screen{w: &stderr}, RunOptions{}).Notice("stopping\x1b[2J\nnow")
		if got, want := stderr.String(), "stopping<U+001B>[2J now\n"; got != want || stdout.Len() > 0 {
			t.Errorf("%s: stderr %q, stdout %q", format, got, stdout.String())
		}
	}
}

// A reader that has stopped reading must not hide that a signal was heard.
func TestNoticeDoesNotWaitForStdout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		stdout := writerFunc(func(b []byte) (int, error) { <-block; return len(b), nil })
		var stderr bytes.Buffer
		shown := NewRun(FormatJSONL, &Screen{w: stdout}, &Screen{w: &stderr}, RunOptions{})
		var writing sync.WaitGroup
		writing.Go(func() { shown.Event(event.Event{Seq: 1, Data: event.StepStart{Step: 1}}) })
		synctest.Wait()
		shown.Notice("stopping")
		if got := stderr.String(); got != "stopping\n" {
			t.Errorf("stderr shows %q", got)
		}
		close(block)
		writing.Wait()
	})
}

func TestForbiddenEventIsAWarning(t *testing.T) {
	var stderr bytes.Buffer
	shown := NewRun(FormatText, &Screen{w: &bytes.Buffer{}}, &Screen{w: &stderr}, RunOptions{Past: begun(t)})
	shown.Event(event.Event{Seq: 7, Call: "c", Data: event.ToolResult{}})
	if got := stderr.String(); got != "warning: event 7 (tool.result): no call \"c\"\n" {
		t.Errorf("got %q", got)
	}
}

func TestRunWithoutEndSaysSo(t *testing.T) {
	var stderr bytes.Buffer
	shown := NewRun(FormatText, &Screen{w: &bytes.Buffer{}}, &Screen{w: &stderr}, RunOptions{})
	if err := shown.Finish(&view.Run{}, "/j"); err != nil || !strings.Contains(stderr.String(), "no end in its journal: /j") {
		t.Errorf("got %q, %v", stderr.String(), err)
	}
}

func TestNumbersReadWell(t *testing.T) {
	got := []string{
		duration(1000), duration(420 * time.Microsecond), duration(12 * time.Millisecond), duration(1234 * time.Millisecond), duration(123 * time.Second),
		count(0), count(999), count(1000), count(-1234567), plural(1, "step"), plural(0, "step"), plural(1200, "token"), cost(nil),
	}
	want := []string{"<0.1ms", "0.4ms", "12ms", "1.2s", "2m03s", "0", "999", "1,000", "-1,234,567", "1 step", "0 steps", "1,200 tokens", "cost unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableIsAlignedByCells(t *testing.T) {
	got := table([][]string{{"漢字", "x"}, {"a", "y"}, {"\x1b[31mred\x1b[0m", "z", "more"}, {"only"}})
	want := "漢字  x\na     y\n\x1b[31mred\x1b[0m   z  more\nonly\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorShowsTheWayOn(t *testing.T) {
	var b bytes.Buffer
	Error(&Screen{w: &b}, errors.New("no agent \"x\x1b[2J\"\nsecond line"), Advice{Meant: "agentctl run", Hint: "look", See: "agentctl --help"})
	want := "error: no agent \"x<U+001B>[2J\"\n  second line\ndid you mean: agentctl run\nhint: look\nsee: agentctl --help\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestExitCodesNameEveryReason(t *testing.T) {
	var b bytes.Buffer
	if err := ExitCodes(&Screen{w: &b}, reason.All()); err != nil {
		t.Fatal(err)
	}
	for _, i := range reason.All() {
		if !strings.Contains(b.String(), string(i.Reason)) || !strings.Contains(b.String(), i.Meaning) {
			t.Errorf("%s is missing", i.Reason)
		}
	}
}

func TestVersionIsALineOrAnObject(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{w: &b}
	v := Version{Version: "v1.2.3", Commit: "0123456789abcdef", Modified: true, Go: "go1.26", OS: "linux", Arch: "amd64"}
	if err := errors.Join(v.WriteText(s), v.WriteJSON(s)); err != nil {
		t.Fatal(err)
	}
	want := `agentctl v1.2.3 (commit 0123456789ab modified, go1.26, linux/amd64)
{
  "version": "v1.2.3",
  "commit": "0123456789abcdef",
  "modified": true,
  "go": "go1.26",
  "os": "linux",
  "arch": "amd64"
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
