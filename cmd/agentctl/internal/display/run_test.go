package display

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

var update = flag.Bool("update", false, "write the expected output anew")

// TestRunIsShown plays the events of each archive to a renderer. The comment of
// an archive says why it is there, then "format:" and "screen:".
func TestRunIsShown(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playArchive(t, path) })
		})
	}
}

func playArchive(t *testing.T, path string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	out, errs := &Screen{w: &stdout}, &Screen{w: &stderr}
	format, asks := FormatText, false
	for line := range strings.Lines(string(archive.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "format":
			format = value
		case "stdout":
			out.TTY = value == "tty"
		case "stderr":
			for word := range strings.FieldsSeq(value) {
				switch word {
				case "tty":
					errs.TTY, errs.Live = true, true
				case "color":
					errs.Color = true
				case "asks":
					asks = true
				case "narrow":
					errs.columns = func() int { return 60 }
				}
			}
		}
	}
	o := RunOptions{Asks: asks}
	past, run := readEvents(t, section(archive, "past.jsonl"), 0), &view.Run{}
	if len(past) > 0 {
		o.Past = &view.Run{}
	}
	for _, e := range past {
		if err := errors.Join(run.Apply(e), o.Past.Apply(e)); err != nil {
			t.Fatal(err)
		}
	}
	shown := NewRun(format, out, errs, o)
	for _, e := range readEvents(t, section(archive, "events.jsonl"), len(past)) {
		if err := run.Apply(e); err != nil {
			t.Fatal(err)
		}
		shown.Event(e)
		if e.Type() == event.TypeTextDelta || e.Type() == event.TypeReasoningDelta {
			time.Sleep(every) // the clock of the bubble, not of the wall
		}
	}
	if err := shown.Finish(run, "/state/runs/r1"); err != nil {
		t.Fatal(err)
	}
	expect(t, path, archive, map[string]string{"stdout": stdout.String(), "stderr": visible(stderr.String())})
}

// visible shows what a terminal obeys: only our own sequences may be there.
func visible(s string) string {
	return strings.NewReplacer("\x1b[", "<", "\r", "<CR>").Replace(s)
}

func readEvents(t *testing.T, lines string, before int) []event.Event {
	t.Helper()
	var events []event.Event
	for line := range strings.Lines(lines) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e.Seq, e.Run = int64(before+len(events)+1), "r1"
		e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(e.Seq) * time.Second)
		events = append(events, e)
	}
	return events
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func expect(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	if *update {
		kept := a.Files[:0]
		for _, f := range a.Files {
			if _, ok := got[f.Name]; !ok {
				kept = append(kept, f)
			}
		}
		a.Files = kept
		for _, name := range []string{"stdout", "stderr"} {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, text := range got {
		if text != "" {
			text = endLine(text) // an archive has whole lines
		}
		if diff := cmp.Diff(section(a, name), text); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", name, path, diff)
		}
	}
}

// What a provider has not counted is an estimate of tokens, and of no money.
func TestAnEstimateIsNotShownAsACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b drawn
		r := newTextRun(&Screen{w: &drawn{}, TTY: true}, &Screen{w: &b, TTY: true, Live: true}, RunOptions{})
		tell := asking(r, "fast")
		tell(event.Event{Message: "m", Data: event.ModelResponse{Model: message.ModelRef{Name: "fast"}, Estimate: &message.Usage{Input: 1000, Output: 200}}})
		tell(event.Event{Message: "m2", Data: event.StepStart{Step: 2}})
		tell(event.Event{Message: "m2", Data: event.ModelRequest{Step: 2, Messages: 2}})
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := b.String(), "waiting 1s for model fast · step 2 · about 1,200 tokens · cost unknown · 1s"; !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		tell(event.Event{Message: "m2", Data: event.ModelResponse{Model: message.ModelRef{Name: "fast"}, Tokens: message.Usage{Input: 34}}})
		tell(event.Event{Data: event.RunFinished{Phase: view.Succeeded, Reason: "Completed", Steps: 2, Tokens: message.Usage{Input: 34}}})
		b.Reset()
		if err := r.Finish(&r.run, "/j"); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), "2 steps · about 1,234 tokens (estimated: the provider does not count them all) · cost unknown · "; !strings.Contains(got, want) || strings.Contains(got, "0.00") {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
