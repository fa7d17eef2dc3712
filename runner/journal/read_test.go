package journal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

// written returns options of a closed journal of five events and its one file.
func written(t testing.TB) (Options, string, []byte) {
	t.Helper()
	o := options(t)
	w := create(t, o)
	appendText(t, w, "one", "two", "three {\"a\": [1]}", "four", "five")
	closeWriter(t, w)
	path := filepath.Join(o.Dir, "events-20260504.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return o, path, b
}

func rewrite(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unanchor(t testing.TB, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, anchorFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestCrashAtEveryByteIsRecovered(t *testing.T) {
	o, path, whole := written(t)
	o.Sync = volatile
	whole = whole[:bytes.Index(whole, []byte(`,"type":"text.end","run":"r-1","message":"m","data":{"text":"four"`))]
	for n := range len(whole) + 1 {
		unanchor(t, o.Dir) // a crash leaves no anchor
		rewrite(t, path, whole[:n])
		complete := int64(bytes.Count(whole[:n], []byte("\n")))
		w, err := Open(context.Background(), o)
		if complete == 0 && errors.Is(err, ErrEmpty) {
			continue
		}
		if err != nil || complete == 0 {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if seq, _ := w.Head(); seq != complete {
			t.Fatalf("cut at byte %d: recovered %d events, want %d", n, seq, complete)
		}
		appendText(t, w, "resumed")
		closeWriter(t, w)
		if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != complete+1 || r.Torn != nil {
			t.Fatalf("cut at byte %d: after the resume %+v, %v", n, r, err)
		}
	}
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	o, path, whole := written(t)
	lastLine := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for i := range whole {
		for _, bit := range []byte{0x01, 0x20, 0x80} {
			b := bytes.Clone(whole)
			b[i] ^= bit
			rewrite(t, path, b)
			_, err := Verify(context.Background(), o.Dir)
			corrupt, ok := errors.AsType[*CorruptError](err)
			if !ok {
				t.Fatalf("byte %d ^ %#x (%q): %v", i, bit, b[i], err)
			}
			// Without its newline the line before the last becomes part of the last.
			if i < lastLine-1 && (corrupt.File != filepath.Base(path) || corrupt.Line == 0) {
				t.Fatalf("byte %d: %v does not name the line", i, err)
			}
		}
	}
	rewrite(t, path, whole)
	anchor := filepath.Join(o.Dir, anchorFile)
	head, err := os.ReadFile(anchor)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(head) - 1 { // the final newline means nothing
		b := bytes.Clone(head)
		b[i] ^= 0x01
		rewrite(t, anchor, b)
		if r, err := Verify(context.Background(), o.Dir); err == nil && r.Anchored {
			t.Fatalf("byte %d of the anchor", i)
		}
	}
}

func TestDamageIsNamedByFileAndLine(t *testing.T) {
	o, path, whole := written(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	tests := map[string]struct {
		reason string
		file   []byte
		want   string
	}{
		"line removed":     {"a hole in the chain", join(lines[0], lines[2], lines[3]), "events-20260504.jsonl:2: event 3 follows event 1"},
		"first removed":    {"the beginning is part of the chain", join(lines[1:]...), ":1: event 2 follows event 0"},
		"lines swapped":    {"order is part of the chain", join(lines[0], lines[2], lines[1]), ":2: event 3 follows event 1"},
		"line repeated":    {"an event happens once", join(lines[0], lines[0]), ":2: event 1 follows event 1"},
		"garbage between":  {"only the last line can be torn", join(lines[0], []byte("nonsense\n"), lines[1]), ":2: not an event"},
		"blank between":    {"a blank line is no event", join(lines[0], []byte("\n"), lines[1]), ":2: not an event"},
		"text changed":     {"the next line holds the old hash", bytes.Replace(whole, []byte("two"), []byte("TWO"), 1), ":3: event 3 does not continue the chain"},
		"foreign run":      {"one journal, one run", join(lines[0], bytes.Replace(lines[1], []byte("r-1"), []byte("r-2"), 1)), `:2: event 2 is of run "r-2"`},
		"bad payload":      {"a known type has a known shape", join(bytes.Replace(lines[0], []byte(`"one"`), []byte(`1`), 1), lines[1]), ":1: not an event"},
		"endless line":     {"a line has a limit", bytes.Repeat([]byte("x"), MaxLine+2), ":1: a line longer than"},
		"wrong hash at 1":  {"the first line has no predecessor", join(bytes.Replace(lines[1], []byte(`"seq":2`), []byte(`"seq":1`), 1), lines[2]), ":1: event 1 does not continue"},
		"complete but old": {"an anchored journal cannot become shorter", join(lines[0], lines[1]), "it had 5 events and now ends with event 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rewrite(t, path, tt.file)
			_, err := Verify(context.Background(), o.Dir)
			if !isCorrupt(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
			}
			if _, err := Open(context.Background(), o); !isCorrupt(err) {
				t.Errorf("Open must not repair damage: %v", err)
			}
		})
	}
}

func TestTornLastLineIsReportedAndReadOver(t *testing.T) {
	o, path, whole := written(t)
	unanchor(t, o.Dir)
	for name, tail := range map[string]string{"half a line": `{"seq":6,"ti`, "zeros": "\x00\x00\x00", "garbage line": "nonsense\n"} {
		rewrite(t, path, append(bytes.Clone(whole), tail...))
		r, err := Verify(context.Background(), o.Dir)
		want := &Torn{File: filepath.Base(path), Line: 6, Offset: int64(len(whole)), Bytes: int64(len(tail))}
		if err != nil || !cmp.Equal(want, r.Torn) || r.Events != 5 {
			t.Errorf("%s: %v, %d events, torn (-want +got):\n%s", name, err, r.Events, cmp.Diff(want, r.Torn))
		}
		if got := readAll(t, o.Dir, 5); len(got) != 1 {
			t.Errorf("%s: read %d events, want the complete one", name, len(got))
		}
	}
}

func TestTornLineOfAnEarlierDayIsDamage(t *testing.T) {
	o, path, whole := written(t)
	rewrite(t, path, whole[:len(whole)-1])
	rewrite(t, filepath.Join(o.Dir, "events-20260505.jsonl"), nil)
	if _, err := Verify(context.Background(), o.Dir); !isCorrupt(err) {
		t.Errorf("got %v", err)
	}
}

func TestReadStopsWhenAskedTo(t *testing.T) {
	o, path, _ := written(t)
	n := 0
	for range Read(context.Background(), o.Dir, 1) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d rounds after break", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range Read(ctx, o.Dir, 1) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	for _, err := range Read(context.Background(), filepath.Join(o.Dir, "none"), 1) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no folder: %v", err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range Read(context.Background(), o.Dir, 1) {
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("FIFO: %v", err)
		}
	}
}

func FuzzRead(f *testing.F) {
	_, _, whole := written(f)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	f.Add(whole, []byte(nil))
	f.Add(bytes.Join(lines[:2], nil), bytes.Join(lines[2:], nil))
	f.Add(whole[:len(whole)/2], []byte("\n"))
	f.Add([]byte(`{"seq":1,"time":"2026-05-04T12:00:00Z","type":"x","run":"r-1","data":null}`+"\n"), []byte("{"))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		o := options(t)
		o.Sync = volatile
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		rewrite(t, filepath.Join(o.Dir, "events-20260504.jsonl"), one)
		if len(two) > 0 {
			rewrite(t, filepath.Join(o.Dir, "events-20260505.jsonl"), two)
		}
		var seen int64
		var readErr error
		for e, err := range Read(context.Background(), o.Dir, 1) {
			if readErr = err; err == nil {
				if seen++; e.Seq != seen {
					t.Fatalf("event %d in place %d", e.Seq, seen)
				}
			}
		}
		r, err := Verify(context.Background(), o.Dir)
		if (err == nil) != (readErr == nil) || r.Events != seen {
			t.Fatalf("Verify: %d, %v; Read: %d, %v", r.Events, err, seen, readErr)
		}
		if err != nil || (r.Run != "" && r.Run != o.Run) {
			return
		}
		w, err := Open(context.Background(), o)
		if seen == 0 && errors.Is(err, ErrEmpty) {
			return
		}
		if err != nil || seen == 0 {
			t.Fatalf("a sound journal does not open: %v", err)
		}
		if _, err := w.Append(event.Event{Data: event.TextStart{}}); err != nil {
			t.Fatal(err)
		}
		closeWriter(t, w)
		if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != seen+1 {
			t.Fatalf("after a resume: %+v, %v", r, err)
		}
	})
}
