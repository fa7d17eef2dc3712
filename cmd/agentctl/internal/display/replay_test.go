package display

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/replay"
)

// replayed shows a replay of a run of one event and an end.
func replayed(t *testing.T, format string, f event.RunFinished, d *replay.Divergence) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	none := func(string) string { return "" }
	r := NewReplay(format, NewScreen(&out, ColorNever, none), NewScreen(&errs, ColorNever, none), "dir/fix.jsonl")
	run := &view.Run{}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for i, p := range []event.Payload{event.RunStarted{
		Agent: "a", Model: message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt-5-mini"}, Files: []message.File{{Filename: "a.png", Mime: "image/png"}}, Isolation: "None", Tools: []string{"bash"},
	}, event.WorkspacePatch{Files: []event.FileChange{{Path: "x", Change: "added"}}}, f} {
		e := event.Event{Seq: int64(i + 1), Time: at, Run: "a-1", Message: "m", Part: "p", Data: p}
		if err := run.Apply(e); err != nil {
			t.Fatal(err)
		}
		r.Event(e)
	}
	if err := r.Finish(run, d); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

func TestAReplayIsShownLikeARunThatLeavesNothing(t *testing.T) {
	stdout, stderr := replayed(t, FormatText, event.RunFinished{Phase: view.Succeeded, Reason: "Completed", Output: "done"}, nil)
	const want = "replaying  run/a-1\ndate       2026-03-04 05:06:07 UTC\nagent      a, model fast (openai gpt-5-mini)\nattached   a.png (image/png)\nSucceeded · 0 steps · 0 tokens (0 in, 0 out) · cost unknown · <0.1ms\nreplay   dir/fix.jsonl\n"
	if diff := cmp.Diff(want, stderr); diff != "" || stdout != "done\n" {
		t.Errorf("stdout %q, stderr (-want +got):\n%s", stdout, diff)
	}
	stdout, _ = replayed(t, FormatJSON, event.RunFinished{Phase: view.Succeeded, Output: "done"}, nil)
	if !strings.Contains(stdout, `"journal": "dir/fix.jsonl"`) {
		t.Errorf("got %s", stdout)
	}
}

func TestADivergenceIsShownOnTwoLines(t *testing.T) {
	d := &replay.Divergence{File: "dir/fix.jsonl", Line: 14, Step: 2, Call: "c\x1b[31m", Tool: "bash", What: "arguments differ", Recorded: `{"command":"ls"}`, Now: "{\"command\":\"ls \x1b[31m-l\"}"}
	f := event.RunFinished{Phase: view.Failed, Reason: "ReplayDiverged", ExitCode: 7, Message: d.Error(), Hint: "record it again"}
	stdout, stderr := replayed(t, FormatText, f, d)
	for _, want := range []string{
		"\nrecorded  {\"command\":\"ls\"}\n", "\nnow       {\"command\":\"ls ", "(bash): arguments differ (fix.jsonl:14)\nhint: record it again\n", "exit code 7",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in:\n%s", want, stderr)
		}
	}
	if stdout != "" || strings.Contains(stderr, "\x1b") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	stdout, _ = replayed(t, FormatJSON, f, d)
	var result view.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Message != d.Error() || result.ExitCode != 7 {
		t.Errorf("%v: %+v", err, result)
	}
}

func TestAnUpdateIsShownAsADifference(t *testing.T) {
	cents := message.Cost(10_000_000_000)
	c := &replay.Change{
		File: "fix.jsonl", Written: true, Reason: replay.Pair[string]{Recorded: "Completed", Now: "MaxSteps"}, Steps: replay.Pair[int]{Recorded: 3, Now: 3},
		Tokens: replay.Pair[int64]{Recorded: 1000, Now: 2000}, Cost: replay.Pair[*message.Cost]{Recorded: &cents},
		Calls: "--- recorded\n+++ now\n@@ -1 +1 @@\n-bash {}: allow\n+bash {\"a\":\"\x1b[31m\"}: deny\n",
	}
	for name, want := range map[string]string{
		"changed": "fix.jsonl: recorded again\n  reason   Completed → MaxSteps\n  tokens   1,000 → 2,000\n",
		"same":    "fix.jsonl: recorded again; nothing differs\n",
		"left":    "fix.jsonl: left as it was\n",
	} {
		shown := *c
		switch name {
		case "same":
			shown = replay.Change{File: "fix.jsonl", Written: true, Same: true}
		case "left":
			shown.Written = false
		}
		var out bytes.Buffer
		if err := WriteUpdate(FormatText, NewScreen(&out, ColorNever, func(string) string { return "" }), &shown); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), "\x1b") || name == "changed" && !strings.Contains(out.String(), "\n    -bash {}: allow\n    +bash") {
			t.Errorf("%s: got\n%s", name, out.String())
		}
	}
	var out bytes.Buffer
	if err := WriteUpdate(FormatJSON, NewScreen(&out, ColorNever, func(string) string { return "" }), c); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || object["written"] != true || object["calls"] != c.Calls {
		t.Errorf("%v: %s", err, out.String())
	}
}
