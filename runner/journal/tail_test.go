package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

func TestTailReadsWhatWasAppended(t *testing.T) {
	now := noon
	o := options(t)
	o.Clock = func() time.Time { return now }
	w := create(t, o)
	tail := NewTail(o.Dir)
	defer tail.Close()
	want := func(e event.Event) {
		t.Helper()
		got, err := tail.Event(e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("event %d (-appended +read):\n%s", e.Seq, diff)
		}
	}
	first := appendText(t, w, "one", "two", strings.Repeat("three", 100_000))
	want(first[0])
	want(first[2]) // two is passed over
	want(appendText(t, w, "four")[0])
	now = now.Add(48 * time.Hour) // the next file
	later := appendText(t, w, "five", "six", "seven")
	want(later[1])
	want(later[2])
	if got, err := tail.Event(3); err == nil {
		t.Errorf("it went back to %v", got)
	}
}

func TestTailRefusesWhatIsNoJournal(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		seq          int64
	}{
		"nothing":     {"there is no file at all", "", 1},
		"too short":   {"the event is not there", `{"seq":1,"time":"2026-05-04T12:00:00Z","type":"text.start","run":"r","data":{}}` + "\n", 2},
		"torn":        {"the line has no end", `{"seq":1`, 1},
		"no event":    {"the line is none", "hello\n", 1},
		"another one": {"lines and numbers differ", `{"seq":7,"time":"2026-05-04T12:00:00Z","type":"text.start","run":"r","data":{}}` + "\n", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(dir, "events-20260504.jsonl"), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tail := NewTail(dir)
			defer tail.Close()
			if got, err := tail.Event(c.seq); err == nil {
				t.Errorf("%s: read %v", c.reason, got)
			}
		})
	}
}

func TestLastIsTheNewestWholeEvent(t *testing.T) {
	o := options(t)
	w := create(t, o)
	if e, err := Last(o.Dir); err == nil {
		t.Errorf("an empty journal ends with %v", e)
	}
	var all []event.Event
	for _, text := range []string{"one", strings.Repeat("long ", 20_000), "three"} {
		all = appendText(t, w, text)
		got, err := Last(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[0], got); diff != "" {
			t.Errorf("(-appended +read):\n%s", diff)
		}
	}
	f, err := os.OpenFile(filepath.Join(o.Dir, "events-20260504.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"seq":4,"ti`); err != nil {
		t.Fatal(err)
	}
	if got, err := Last(o.Dir); err != nil || got.Seq != 3 {
		t.Errorf("a torn line hides event 3: %v, %v", got.Seq, err)
	}
	appendText(t, w, strings.Repeat("too long ", lastRoom/9)) // behind the torn one: together they are not an event
	if got, err := Last(o.Dir); err != nil || got.Seq != 3 {
		t.Errorf("a long torn line hides event 3: %v, %v", got.Seq, err)
	}
}

func TestLastReadsAsMuchAsItMust(t *testing.T) {
	o := options(t)
	w := create(t, o)
	for _, size := range []int{10, lastRoom, 3 * lastRoom, 10, 5 * lastRoom} {
		e := appendText(t, w, strings.Repeat("x", size))
		if got, err := Last(o.Dir); err != nil || got.Seq != e[0].Seq {
			t.Errorf("%d bytes: event %d, %v", size, got.Seq, err)
		}
	}
}
