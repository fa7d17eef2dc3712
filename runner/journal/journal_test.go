package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func options(t testing.TB) Options {
	t.Helper()
	return Options{Dir: filepath.Join(t.TempDir(), "runs", "r-1"), Run: "r-1", Clock: func() time.Time { return noon }}
}

func create(t testing.TB, o Options) *Writer {
	t.Helper()
	w, err := Create(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func appendText(t testing.TB, w *Writer, texts ...string) []event.Event {
	t.Helper()
	var out []event.Event
	for _, s := range texts {
		e, err := w.Append(event.Event{Message: "m", Data: event.TextEnd{Text: s}})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func readAll(t testing.TB, dir string, from int64) []event.Event {
	t.Helper()
	var out []event.Event
	for e, err := range Read(context.Background(), dir, from) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func closeWriter(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAppendedEventsAreReadBackAsReturned(t *testing.T) {
	o := options(t)
	w := create(t, o)
	want := appendText(t, w, "one", "<two> & \"three\"", "vier\nfünf")
	if got := readAll(t, o.Dir, 1); !cmp.Equal(want, got) {
		t.Errorf("a follower sees something else (-want +got):\n%s", cmp.Diff(want, got))
	}
	closeWriter(t, w)
	if got := readAll(t, o.Dir, 3); !cmp.Equal(want[2:], got) {
		t.Errorf("from 3 (-want +got):\n%s", cmp.Diff(want[2:], got))
	}
	seq, head := w.Head()
	r, err := Verify(context.Background(), o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Report{Run: "r-1", Events: seq, Head: head, Files: []string{"events-20260504.jsonl"}, Anchored: true}, r); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if seq != 3 || want[2].Prev == "" || want[0].Prev != "" {
		t.Errorf("seq %d, prev of the first %q, of the third %q", seq, want[0].Prev, want[2].Prev)
	}
}

func TestFolderAndFilesArePrivate(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	if _, err := w.PutBlob([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	closeWriter(t, w)
	err := filepath.WalkDir(filepath.Dir(o.Dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v: others can reach it", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDayChangeOpensNewFileAndKeepsChain(t *testing.T) {
	o := options(t)
	now := noon
	o.Clock = func() time.Time { return now }
	w := create(t, o)
	for _, hours := range []int{0, 13, -13, 24 * 3} {
		now = now.Add(time.Duration(hours) * time.Hour)
		appendText(t, w, fmt.Sprint(hours))
	}
	closeWriter(t, w)
	r, err := Verify(context.Background(), o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"events-20260504.jsonl", "events-20260505.jsonl", "events-20260507.jsonl"}
	if diff := cmp.Diff(want, r.Files); diff != "" || r.Events != 4 {
		t.Errorf("a clock that goes back must not reorder the chain: %d events, files (-want +got):\n%s", r.Events, diff)
	}
	w, err = Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if e := appendText(t, w, "again")[0]; e.Seq != 5 {
		t.Errorf("seq %d after a resume, want 5", e.Seq)
	}
	closeWriter(t, w)
	if err := os.Remove(filepath.Join(o.Dir, want[1])); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(context.Background(), o.Dir); !isCorrupt(err) {
		t.Errorf("a missing day was not found: %v", err)
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*CorruptError](err)
	return ok
}

func TestSecondWriterIsTurnedAwayByName(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	for name, open := range map[string]func(context.Context, Options) (*Writer, error){"Create": Create, "Open": Open} {
		_, err := open(context.Background(), o)
		held, ok := errors.AsType[*HeldError](err)
		if !ok || !strings.Contains(held.Holder, fmt.Sprint(os.Getpid())) || !strings.Contains(err.Error(), "journal.test") {
			t.Errorf("%s: %v, want it to name this process", name, err)
		}
	}
	closeWriter(t, w)
	if _, err := Create(context.Background(), o); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("Create over an old journal: %v", err)
	}
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatalf("the lock was not given back: %v", err)
	}
	closeWriter(t, again)
}

func TestBadOptionsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, run := range []string{"", "..", "../x", "a/b", "A", "-a", "a\x00", strings.Repeat("a", 300)} {
		if _, err := Create(context.Background(), Options{Dir: filepath.Join(dir, "x"), Run: run}); err == nil {
			t.Errorf("run id %q was accepted", run)
		}
	}
	if _, err := Open(context.Background(), Options{Dir: filepath.Join(dir, "none"), Run: "r"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of a missing run: %v", err)
	}
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	closeWriter(t, w)
	o.Run = "r-2"
	if _, err := Open(context.Background(), o); err == nil || !strings.Contains(err.Error(), `belongs to run "r-1"`) {
		t.Errorf("open under another name: %v", err)
	}
}

func TestEventThatCannotBeWrittenLeavesNoTrace(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "before")
	tests := map[string]event.Event{
		"no payload":       {},
		"too long":         {Data: event.TextEnd{Text: strings.Repeat("x", MaxLine)}},
		"foreign newline":  {Data: event.Unknown{Of: "x", Raw: json.RawMessage("{\n}")}},
		"foreign garbage":  {Data: event.Unknown{Of: "x", Raw: json.RawMessage("{")}},
		"foreign bad type": {Data: event.Unknown{Of: `x"`, Raw: json.RawMessage("{}")}},
		"bad year":         {Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), Data: event.TextStart{}},
	}
	for name, e := range tests {
		if _, err := w.Append(e); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if e := appendText(t, w, "after")[0]; e.Seq != 2 {
		t.Errorf("seq %d after refused events, want 2", e.Seq)
	}
	closeWriter(t, w)
	if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != 2 {
		t.Errorf("%d events, %v", r.Events, err)
	}
}

func TestSecretsNeverReachTheDisk(t *testing.T) {
	o := options(t)
	o.Redact = func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("hunter2"), []byte("[redacted]")), []byte("1"), []byte("2"))
	}
	w := create(t, o)
	got, err := w.Append(event.Event{Data: event.ToolProgress{Text: "the key is hunter2 <1>"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(event.Payload(event.ToolProgress{Text: "the key is [redacted] <2>"}), got.Data); diff != "" {
		t.Errorf("what is shown differs from what is written (-want +got):\n%s", diff)
	}
	appendText(t, w, "harmless")
	closeWriter(t, w)
	b, err := os.ReadFile(filepath.Join(o.Dir, "events-20260504.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("hunter2")) || !bytes.Contains(b, []byte(`"seq":1`)) {
		t.Errorf("file:\n%s", b)
	}
	if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != 2 {
		t.Errorf("%d events, %v", r.Events, err)
	}
}

func TestRedactionThatBreaksJSONIsRefused(t *testing.T) {
	for name, redact := range map[string]func([]byte) []byte{
		"no JSON":       func([]byte) []byte { return []byte(`{"text":`) },
		"another shape": func([]byte) []byte { return []byte(`{"text":5}`) },
		"two lines":     func([]byte) []byte { return []byte("{\n}") },
	} {
		o := options(t)
		o.Redact = redact
		w := create(t, o)
		if _, err := w.Append(event.Event{Data: event.TextEnd{Text: "x"}}); err == nil {
			t.Errorf("%s: written", name)
		}
		closeWriter(t, w)
	}
}

func TestFailedWritePoisonsTheWriter(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "good")
	if err := w.file.Close(); err != nil { // every write fails from now on
		t.Fatal(err)
	}
	_, err := w.Append(event.Event{Data: event.TextStart{}})
	if err == nil {
		t.Fatal("a failed write was not reported")
	}
	if _, again := w.Append(event.Event{Data: event.TextStart{}}); !errors.Is(again, err) {
		t.Errorf("append after a failure: %v, want %v", again, err)
	}
	if again := w.Sync(); !errors.Is(again, err) {
		t.Errorf("sync after a failure: %v", again)
	}
	if _, again := w.PutBlob([]byte("x")); !errors.Is(again, err) {
		t.Errorf("blob after a failure: %v", again)
	}
	if err := w.Close(); err == nil {
		t.Error("close of a failed journal reports success")
	}
	if _, err := os.Stat(filepath.Join(o.Dir, anchorFile)); err == nil {
		t.Error("a failed journal was anchored")
	}
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if seq, _ := again.Head(); seq != 1 {
		t.Errorf("recovered %d events, want 1", seq)
	}
	closeWriter(t, again)
}

func TestFailedSyncPoisonsTheWriter(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err == nil {
		t.Fatal("sync of a folder that is gone succeeded")
	}
	if _, err := w.Append(event.Event{Data: event.TextStart{}}); err == nil {
		t.Error("append after a failed sync succeeded")
	}
}

func TestClosedWriterRefuses(t *testing.T) {
	w := create(t, options(t))
	closeWriter(t, w)
	closeWriter(t, w)
	if _, err := w.Append(event.Event{Data: event.TextStart{}}); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := w.PutBlob(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("blob: %v", err)
	}
	if err := w.Sync(); !errors.Is(err, ErrClosed) {
		t.Errorf("sync: %v", err)
	}
}

func TestManyGoroutinesKeepOneChain(t *testing.T) {
	o := options(t)
	var mu sync.Mutex
	now := noon
	o.Clock = func() time.Time { // every hour is a call: the day changes under load
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Hour)
		return now
	}
	w := create(t, o)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := w.Append(event.Event{Data: event.TextEnd{Text: fmt.Sprint(g, i)}}); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if err := w.Sync(); err != nil {
						t.Error(err)
					}
				}
				if _, err := w.PutBlob([]byte(fmt.Sprint(i % 7))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeWriter(t, w)
	if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != 400 || len(r.Files) < 16 {
		t.Errorf("%d events in %d files, %v", r.Events, len(r.Files), err)
	}
}

func BenchmarkAppend(b *testing.B) {
	w := create(b, options(b))
	e := event.Event{Message: "msg-1", Part: "prt-1", Data: event.TextDelta{Text: "some words of an answer "}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Append(e); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkAppendSync(b *testing.B) {
	w := create(b, options(b))
	e := event.Event{Message: "msg-1", Part: "prt-1", Data: event.TextDelta{Text: "some words of an answer "}}
	for b.Loop() {
		if _, err := w.Append(e); err != nil {
			b.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
