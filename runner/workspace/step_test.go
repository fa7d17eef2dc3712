package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// began is a time before everything that a test does.
func began() time.Time { return time.Now().Add(-time.Hour) }

func takeStep(t testing.TB, w *Workspace, since string, began time.Time) *Recorded {
	t.Helper()
	r, err := w.Step(context.Background(), since, began)
	must(t, err)
	return r
}

// states are the paths and contents of a recorded state, as far as they are kept.
func states(t testing.TB, blobs Blobs, id string) map[string]string {
	t.Helper()
	s, err := ReadState(blobs, id)
	must(t, err)
	all := map[string]string{}
	for _, e := range s.Entries {
		if e.Type == TypeFile {
			b, err := blobs.GetBlob(e.Hash)
			all[string(e.Path)] = string(b)
			if err != nil {
				all[string(e.Path)] = "not kept"
			}
		}
	}
	return all
}

func TestStepsRecordWhatChangedAndWhatWasThereBefore(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n", "b": "two\n", "c": "three\n"})
	ready(t, w)
	base, err := w.Base().Record(spec.Blobs)
	must(t, err)
	if r := takeStep(t, w, base, began()); r.ID != base || r.Changed != 0 || r.Files != 3 {
		t.Errorf("nothing has changed, and recorded is %+v", r)
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "a"), []byte("ONE\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(w.Dir(), "new"), []byte("new\n"), 0o644))
	first := takeStep(t, w, base, began())
	must(t, os.Remove(filepath.Join(w.Dir(), "b")))
	must(t, os.WriteFile(filepath.Join(w.Dir(), "a"), []byte("1\n"), 0o644))
	second := takeStep(t, w, first.ID, began())
	for id, want := range map[string]map[string]string{
		base:      {"a": "one\n", "b": "two\n", "c": "not kept"},
		first.ID:  {"a": "ONE\n", "b": "two\n", "c": "not kept", "new": "new\n"},
		second.ID: {"a": "1\n", "c": "not kept", "new": "new\n"},
	} {
		if diff := cmp.Diff(want, states(t, spec.Blobs, id)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if first.Changed != 2 || second.Changed != 2 || first.Unkept+second.Unkept != 0 {
		t.Errorf("counted %+v and %+v", first, second)
	}
}

func TestWhatOthersChangeBetweenTheCallsIsForeign(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n"})
	ready(t, w)
	base, err := w.Base().Record(spec.Blobs)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "theirs"), []byte("x\n"), 0o644))
	r := takeStep(t, w, base, time.Now().Add(time.Hour))
	found, err := Foreign(spec.Blobs, base, r.ID)
	must(t, err)
	if diff := cmp.Diff(map[Path]bool{"theirs": true}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "ours"), []byte("x\n"), 0o644))
	next := takeStep(t, w, r.ID, began())
	if found, err := Foreign(spec.Blobs, r.ID, next.ID); err != nil || len(found) > 0 {
		t.Errorf("foreign after the next step: %v, %v", found, err)
	}
}

func TestLargeAndManyFilesOfAStepAreKnownByTheirHashOnly(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n"})
	ready(t, w)
	base, err := w.Base().Record(spec.Blobs)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "big"), []byte(strings.Repeat("x", MaxKept+1)), 0o644))
	for i := range maxStepFiles + 10 {
		must(t, os.WriteFile(filepath.Join(w.Dir(), fmt.Sprint("n", i)), []byte(fmt.Sprint(i)), 0o644))
	}
	r := takeStep(t, w, base, began())
	if r.Unkept != 11 || r.Changed != maxStepFiles+11 {
		t.Errorf("recorded %+v", r)
	}
	s, err := ReadState(spec.Blobs, r.ID)
	must(t, err)
	for _, e := range s.Entries {
		if e.Hash == "" {
			t.Errorf("%s has no hash", e.Path)
		}
	}
}

// The contents that earlier processes of a run have kept count towards its limit.
func TestTheLimitOfKeptContentsIsThatOfTheRun(t *testing.T) {
	w, spec := setup(t, files{"a": "one\n"}, func(s *Spec) { s.Kept = maxRunBytes - 10 })
	ready(t, w)
	base, err := w.Base().Record(spec.Blobs)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Dir(), "b"), []byte("8 bytes\n"), 0o644))
	first := takeStep(t, w, base, began())
	if first.Kept != 8 || first.Unkept != 0 {
		t.Errorf("there was room for it, and recorded is %+v", first)
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), "c"), []byte("too much\n"), 0o644))
	second := takeStep(t, w, first.ID, began())
	if second.Kept != 0 || second.Unkept != 1 {
		t.Errorf("there was no room for it, and recorded is %+v", second)
	}
}

func TestADamagedStepIsRefused(t *testing.T) {
	_, spec := setup(t, files{})
	for _, text := range []string{`{"since":"sha256:00`, `{"since":"","entries":[{"path":"../x","type":"file"}]}`} {
		id, err := spec.Blobs.PutBlob([]byte(text))
		must(t, err)
		if _, err := ReadState(spec.Blobs, id); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// BenchmarkStepOf50000Files is a step that has changed one file. It has to stay below 100 ms
// and 1 MB.
func BenchmarkStepOf50000Files(b *testing.B) {
	w, spec := setup(b, fiftyThousand())
	ready(b, w)
	since, err := w.Base().Record(spec.Blobs)
	must(b, err)
	var cpu time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		must(b, os.WriteFile(filepath.Join(w.Dir(), "pkg001/changed"), []byte(fmt.Sprint(i)), 0o600))
		cpu -= processorTime(b)
		b.StartTimer()
		r, err := w.Step(context.Background(), since, began())
		must(b, err)
		cpu += processorTime(b)
		since = r.ID
		text, err := spec.Blobs.GetBlob(since)
		must(b, err)
		b.ReportMetric(float64(len(text)), "bytes/step")
	}
	b.ReportMetric(cpu.Seconds()*1000/float64(b.N), "cpu-ms/step")
}

// processorTime is what this process has used: the wall time says little on a busy machine.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	must(tb, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
