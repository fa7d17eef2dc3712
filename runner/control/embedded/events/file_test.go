package events

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestRestartKeepsTheEvents(t *testing.T) {
	c, path := newClock(), filepath.Join(t.TempDir(), "events.jsonl")
	s := open(t, Options{Path: path, Now: c.Now, Age: time.Hour})
	s.Record(about("old", "Accepted", ""))
	c.add(59 * time.Minute)
	s.Record(about("a", "Accepted", ""))
	s.Record(about("b", "Accepted", ""))
	s.Record(about("a", "Accepted", ""))
	before := s.all()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	c.add(2 * time.Minute)
	s = open(t, Options{Path: path, Now: c.Now, Age: time.Hour})
	want(t, s, "b Accepted  x1", "a Accepted  x2")
	last, _ := strconv.ParseUint(before[len(before)-1].ResourceVersion, 10, 64)
	s.Record(about("b", "Accepted", ""))
	want(t, s, "a Accepted  x2", "b Accepted  x2")
	if next, _ := strconv.ParseUint(s.all()[1].ResourceVersion, 10, 64); next <= last {
		t.Errorf("version %d after %d", next, last)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// written waits until the file holds so many lines.
func written(t *testing.T, path string, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		b, err := os.ReadFile(path)
		if err == nil && bytes.Count(b, []byte("\n")) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the file has %d lines, want %d: %v", bytes.Count(b, []byte("\n")), n, err)
		}
	}
}

// TestAKilledProcessLeavesItsEvents reads what the file is before any Close,
// with what a kill in the middle of a write and a stranger leave in it.
func TestAKilledProcessLeavesItsEvents(t *testing.T) {
	c, path := newClock(), filepath.Join(t.TempDir(), "events.jsonl")
	s := open(t, Options{Path: path, Now: c.Now})
	s.Record(about("a", "Accepted", ""))
	s.Record(about("a", "Accepted", ""))
	s.Record(about("b", "Accepted", ""))
	written(t, path, 3)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "events.jsonl")
	spoilt := "\n{}\nnull\n[1]\nnot json\n" + string(text) + `{"metadata":{"name":"x","namespace":"y","resourceVersion":"-1"}}` + "\n" + string(text[:40])
	if err := os.WriteFile(other, []byte(spoilt), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, Options{Path: other, Now: c.Now})
	want(t, again, "a Accepted  x2", "b Accepted  x1")
	for _, s := range []*Store{s, again} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheFileDoesNotGrowForEver records the same again and again.
func TestTheFileDoesNotGrowForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	s := open(t, Options{Path: path, Limit: 8})
	for i := range 500 {
		s.Record(about("a", "Accepted", fmt.Sprint(i%3)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.file.lines > 2*8 {
		t.Errorf("the file had %d lines", s.file.lines)
	}
	written(t, path, 3)
}

func TestAFileThatCannotBeReadIsNoReasonNotToStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", maxLine+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := open(t, Options{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.Record(about("a", "Accepted", ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "cannot be read") {
		t.Errorf("the log says %q", log.String())
	}
	want(t, open(t, Options{Path: path}), "a Accepted  x1")
}

// TestADiskThatIsFullIsSaidOnce: the events are still there to be read.
func TestADiskThatIsFullIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	defer full.Close()
	f := &file{path: "full", limit: 100, log: slog.New(slog.NewTextHandler(&log, nil)), out: full}
	e := about("a", "Accepted", "")
	for range 3 {
		f.tell(f.write([]*corev1.Event{e}, false))
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a.1","namespace":"default","resourceVersion":"7"},"count":2}` + "\n"))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{Path: path, Limit: 4, PerObject: 2})
		s.Record(about("a", "Accepted", ""))
		if n := len(s.all()); n < 1 || n > 4 {
			t.Errorf("%d events", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAFileIsGoneOnWithWhereItEnds: a file is continued at its end, and no line
// is appended to an incomplete one.
func TestAFileIsGoneOnWithWhereItEnds(t *testing.T) {
	c, path := newClock(), filepath.Join(t.TempDir(), "events.jsonl")
	s := open(t, Options{Path: path, Now: c.Now})
	s.Record(about("a", "Accepted", ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string][]byte{"whole": text, "no end": bytes.TrimSuffix(text, []byte("\n"))} {
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{Path: path, Now: c.Now})
		s.Record(about("b", "Accepted", ""))
		written(t, path, 2) // as a process leaves it that is killed now
		killed := filepath.Join(t.TempDir(), "events.jsonl")
		left, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(killed, left, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		again := open(t, Options{Path: killed, Now: c.Now})
		if diff := cmp.Diff([]string{"a Accepted  x1", "b Accepted  x1"}, lines(again)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, s := range []*Store{s, again} {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAFileThatCannotBeWrittenIsNoReasonNotToStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "full")
	path := filepath.Join(dir, "events.jsonl")
	var log bytes.Buffer
	s := open(t, Options{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.Record(about("a", "Accepted", ""))
	want(t, s, "a Accepted  x1")
	if !strings.Contains(log.String(), "cannot be written") {
		t.Errorf("nobody is told: %s", log.String())
	}
	if err := s.Close(); err == nil {
		t.Error("it is said to have been written")
	}
	s = open(t, Options{Path: path})
	if err := os.Mkdir(dir, 0o700); err != nil { // there is room again
		t.Fatal(err)
	}
	s.Record(about("a", "Accepted", ""))
	written(t, path, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
