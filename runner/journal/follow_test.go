package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

func TestFollowerTellsEachEventOnce(t *testing.T) {
	now := noon
	o := options(t)
	o.Clock = func() time.Time { return now }
	w := create(t, o)
	f := Follow(o.Dir)
	defer f.Close()
	want := func(appended ...event.Event) {
		t.Helper()
		for _, e := range appended {
			got, err := f.Event()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, got); diff != "" {
				t.Errorf("event %d (-appended +read):\n%s", e.Seq, diff)
			}
		}
		if e, err := f.Event(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the last event there is %v, %v", e, err)
		}
	}
	want()
	want(appendText(t, w, "one", strings.Repeat("two", 300_000), "three")...)
	want(appendText(t, w, "four")...)
	last := appendText(t, w, "five")
	now = now.Add(48 * time.Hour) // the next file
	want(append(last, appendText(t, w, "six", "seven")...)...)
}

// TestFollowerWaitsForTheEndOfALine: a writer at work leaves half a line behind.
func TestFollowerWaitsForTheEndOfALine(t *testing.T) {
	const line = `{"seq":1,"time":"2026-05-04T12:00:00Z","type":"text.start","run":"r","data":{}}`
	path := filepath.Join(t.TempDir(), "events-20260504.jsonl")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	f := Follow(filepath.Dir(path))
	defer f.Close()
	for i := range len(line) {
		if _, err := out.WriteString(line[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after %d bytes: %q, %v", i+1, got, err)
		}
	}
	if _, err := out.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Next(); err != nil || string(got) != line {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFollowerRefusesWhatIsNoJournal(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"no event":    {"the line is none", "hello\n", "read event 1: "},
		"another one": {"lines and numbers differ", `{"seq":7,"time":"2026-05-04T12:00:00Z","type":"text.start","run":"r","data":{}}` + "\n", "its line holds event 7"},
		"endless":     {"a line has a limit", strings.Repeat("x", MaxLine+1), "line too long"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "events-20260504.jsonl"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := Follow(dir)
			defer f.Close()
			if e, err := f.Event(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, %v", c.reason, e, err)
			}
		})
	}
	f := Follow(filepath.Join(t.TempDir(), "none"))
	if _, err := f.Next(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
}

// TestFollowerKnowsHowMuchIsLeft before it reads it.
func TestFollowerKnowsHowMuchIsLeft(t *testing.T) {
	now := noon
	o := options(t)
	o.Clock = func() time.Time { return now }
	f := Follow(o.Dir)
	defer f.Close()
	if f.Grown() {
		t.Error("grown before there is a folder")
	}
	w := create(t, o)
	appendText(t, w, "one", strings.Repeat("two", 100_000))
	now = now.Add(24 * time.Hour)
	appendText(t, w, "three")
	left := int64(0)
	for _, name := range []string{"events-20260504.jsonl", "events-20260505.jsonl"} {
		info, err := os.Stat(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		left += info.Size()
	}
	for seq := 0; ; seq++ {
		got, err := f.Behind()
		if err != nil || got != left {
			t.Errorf("after %d events %d bytes are left, %v, want %d", seq, got, err, left)
		}
		line, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		left -= int64(len(line)) + 1
	}
	if left != 0 || f.Grown() {
		t.Errorf("at the end %d bytes are left, grown %v", left, f.Grown())
	}
	if appendText(t, w, "four"); !f.Grown() {
		t.Error("not grown by an event")
	}
}
