package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// closedJournal is a journal of two days that was closed in order.
func closedJournal(t *testing.T) Options {
	t.Helper()
	o := options(t)
	now := time.Date(2026, 5, 4, 23, 59, 58, 0, time.UTC)
	o.Clock = func() time.Time { now = now.Add(500 * time.Millisecond); return now }
	w := create(t, o)
	for i, p := range []event.Payload{
		event.RunStarted{Agent: "a", Prompt: "go", Isolation: "None", Version: "test"},
		event.StepStart{Step: 1},
		event.ModelRequest{Step: 1, Messages: 1},
		event.TextEnd{Text: "a \"quoted\" text,\nof two lines"},
		event.ModelResponse{Finish: message.FinishStop},
		event.Unknown{Of: "hologram.start", Raw: []byte(`{"x":[1]}`)},
		event.RunFinished{Phase: "Succeeded", Reason: "Completed", Output: "done"},
	} {
		if _, err := w.Append(event.Event{Message: fmt.Sprint("m", i), Data: p}); err != nil {
			t.Fatal(err)
		}
	}
	closeWriter(t, w)
	return o
}

func check(dir string) (Report, error) {
	return Check(context.Background(), dir, func(Line) error { return nil })
}

func TestCheckSeesWhatWasWritten(t *testing.T) {
	o := closedJournal(t)
	var seen []string
	r, err := Check(t.Context(), o.Dir, func(l Line) error {
		text, err := os.ReadFile(filepath.Join(o.Dir, l.File))
		if err != nil {
			return err
		}
		lines := bytes.Split(text, []byte("\n"))
		if !bytes.Equal(lines[l.Number-1], l.Text) || !bytes.HasPrefix(text[l.Offset:], l.Text) {
			t.Errorf("line %d of %s is not at byte %d", l.Number, l.File, l.Offset)
		}
		seen = append(seen, fmt.Sprint(l.Seq, " ", string(l.Type)))
		return nil
	})
	want := "1 run.started,2 step.start,3 model.request,4 text.end,5 model.response,6 hologram.start,7 run.finished"
	if got := strings.Join(seen, ","); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	plain, err := Verify(t.Context(), o.Dir)
	if err != nil || r.Head != plain.Head || r.Events != plain.Events || r.Run != plain.Run || !r.Anchored || r.Vouched != 7 || len(r.Files) != 2 {
		t.Errorf("got %+v, Verify says %+v, %v", r, plain, err)
	}
}

// A journal that was closed in order is what was written, to the last bit.
func TestCheckFindsEveryChangedByte(t *testing.T) {
	o := closedJournal(t)
	found := 0
	for _, name := range append(mustFiles(t, o.Dir), anchorFile) {
		path := filepath.Join(o.Dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			line := 1 + bytes.Count(whole[:at], []byte("\n"))
			for _, flip := range []byte{1, 0x20, 0x80, whole[at] ^ ' ', whole[at] ^ '\n', whole[at] ^ '"'} {
				if flip == 0 {
					continue
				}
				changed := bytes.Clone(whole)
				changed[at] ^= flip
				rewrite(t, path, changed)
				_, err := check(o.Dir)
				c, ok := errors.AsType[*CorruptError](err)
				if !ok {
					t.Fatalf("byte %d of %s, %q instead of %q: %v", at, name, changed[at], whole[at], err)
				}
				if found++; whole[at] == '\n' || changed[at] == '\n' || name == anchorFile {
					continue // it is another line then
				}
				if c.File != name || c.Line != line || c.Expected == "" || c.Expected == c.Found {
					t.Fatalf("byte %d of %s is in line %d: %+v", at, name, line, c)
				}
			}
			for what, changed := range map[string][]byte{
				"removed":  append(bytes.Clone(whole[:at]), whole[at+1:]...),
				"inserted": append(append(bytes.Clone(whole[:at]), whole[max(0, at-1)]), whole[at:]...),
				"cut":      whole[:at],
			} {
				rewrite(t, path, changed)
				if _, err := check(o.Dir); !isCorrupt(err) {
					t.Fatalf("byte %d of %s %s: %v", at, name, what, err)
				}
			}
		}
		for _, more := range []string{"\n", " ", "x", "{}\n", "\x00", `{"seq":8}` + "\n", string(whole)} {
			rewrite(t, path, append(bytes.Clone(whole), more...))
			if _, err := check(o.Dir); !isCorrupt(err) {
				t.Errorf("%q behind %s: %v", more, name, err)
			}
		}
		rewrite(t, path, whole)
	}
	if _, err := check(o.Dir); err != nil || found < 5000 {
		t.Errorf("%d changes; whole again: %v", found, err)
	}
}

func mustFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := dayFiles(dir)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

func TestCheckFindsLinesThatWereMoved(t *testing.T) {
	o := closedJournal(t)
	for _, name := range mustFiles(t, o.Dir) {
		path := filepath.Join(o.Dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(whole, []byte("\n"))
		lines = lines[:len(lines)-1]
		for i := range lines {
			without := bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)
			twice := bytes.Join(append(append([][]byte{}, lines[:i+1]...), lines[i:]...), nil)
			changes := map[string][]byte{"removed": without, "doubled": twice}
			if i > 0 {
				swapped := append([][]byte{}, lines...)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				changes["swapped"] = bytes.Join(swapped, nil)
			}
			for what, changed := range changes {
				rewrite(t, path, changed)
				if _, err := check(o.Dir); !isCorrupt(err) {
					t.Errorf("line %d of %s %s: %v", i+1, name, what, err)
				}
			}
		}
		rewrite(t, path, whole)
	}
}

func TestCheckFindsFilesThatWereMoved(t *testing.T) {
	for what, change := range map[string]func(dir, first, last string) error{
		"the first removed": func(dir, first, _ string) error { return os.Remove(filepath.Join(dir, first)) },
		"the last removed":  func(dir, _, last string) error { return os.Remove(filepath.Join(dir, last)) },
		"the head removed":  func(dir, _, _ string) error { return os.Remove(filepath.Join(dir, anchorFile)) },
		"the head emptied":  func(dir, _, _ string) error { return os.Truncate(filepath.Join(dir, anchorFile), 0) },
		"the last emptied":  func(dir, _, last string) error { return os.Truncate(filepath.Join(dir, last), 0) },
		"an empty one in between": func(dir, _, _ string) error {
			return os.WriteFile(filepath.Join(dir, "events-20260503.jsonl"), nil, 0o600)
		},
		"the name of another day": func(dir, _, last string) error {
			return os.Rename(filepath.Join(dir, last), filepath.Join(dir, "events-20260506.jsonl"))
		},
		"the head is a link":        func(dir, _, _ string) error { return relink(filepath.Join(dir, anchorFile)) },
		"the first is a link":       func(dir, first, _ string) error { return relink(filepath.Join(dir, first)) },
		"a head of another journal": func(dir, _, _ string) error { return os.WriteFile(filepath.Join(dir, anchorFile), otherHead(), 0o600) },
	} {
		o := closedJournal(t)
		files := mustFiles(t, o.Dir)
		if err := change(o.Dir, files[0], files[len(files)-1]); err != nil {
			t.Fatal(err)
		}
		if _, err := check(o.Dir); !isCorrupt(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func relink(path string) error {
	return errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
}

func otherHead() []byte {
	line, _ := anchor{Seq: 7, Hash: hashLine([]byte("another"))}.line()
	return line
}

func TestCheckAcceptsAJournalThatIsWritten(t *testing.T) {
	o := options(t)
	w := create(t, o)
	for i := range 20 {
		appendText(t, w, fmt.Sprint(i))
		if i == 10 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := check(o.Dir)
		if err != nil || r.Events != int64(i+1) || r.Anchored {
			t.Fatalf("after event %d: %+v, %v", i+1, r, err)
		}
	}
	closeWriter(t, w)
	again, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := check(o.Dir); err != nil || !r.Anchored {
		t.Errorf("opened again: %+v, %v", r, err)
	}
	appendText(t, again, "more")
	r, err := check(o.Dir)
	if err != nil || r.Anchored || r.Events != 21 {
		t.Errorf("continued: %+v, %v", r, err)
	}
	// As a kill leaves it: nothing was synced since the journal was opened, yet its head is
	// not that of a closed one.
	if err := again.lock.release(); err != nil {
		t.Fatal(err)
	}
	if r, err := check(o.Dir); err != nil || r.Vouched != 20 {
		t.Errorf("killed: %+v, %v", r, err)
	}
}

func TestCheckAcceptsWhatOlderVersionsHaveWritten(t *testing.T) {
	o := closedJournal(t)
	r, err := check(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.Dir, anchorFile)
	rewrite(t, path, fmt.Appendf(nil, "{\"seq\":%d,\"hash\":%q}\n", r.Events, r.Head))
	if r, err := check(o.Dir); err != nil || !r.Anchored {
		t.Errorf("a head without a sum: %+v, %v", r, err)
	}
	rewrite(t, path, fmt.Appendf(nil, "{\"seq\":%d, \"hash\":%q}\n", r.Events, r.Head))
	if _, err := check(o.Dir); !isCorrupt(err) {
		t.Errorf("with a space more: %v", err)
	}
}

func TestLastLeavesOutWhatWasDoneWithTheChange(t *testing.T) {
	o := closedJournal(t)
	for range 3 {
		w, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(event.Event{Data: event.WorkspaceApplied{Source: "/src", Files: 1, By: "jane"}}); err != nil {
			t.Fatal(err)
		}
		closeWriter(t, w)
	}
	e, err := Last(o.Dir)
	if f, ok := e.Data.(event.RunFinished); err != nil || !ok || f.Phase != "Succeeded" || e.Seq != 7 {
		t.Errorf("got %+v, %v", e, err)
	}
	if r, err := check(o.Dir); err != nil || r.Events != 10 || !r.Anchored {
		t.Errorf("got %+v, %v", r, err)
	}
}
