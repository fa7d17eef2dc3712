package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readers are all ways to read a journal that is not being written. Each returns
// the number of events it has given and its error.
var readers = map[string]func(dir string) (int64, error){
	"read": func(dir string) (n int64, err error) {
		for _, e := range Read(context.Background(), dir, 0) {
			if e != nil {
				return n, e
			}
			n++
		}
		return n, nil
	},
	"verify": func(dir string) (int64, error) {
		r, err := Verify(context.Background(), dir)
		return r.Events, err
	},
	"follow": func(dir string) (n int64, err error) {
		f := Follow(dir)
		defer f.Close() //nolint:errcheck // nothing was written
		for {
			if _, err := f.Event(); err != nil {
				return n, f.Ended()
			}
			n++
		}
	},
	"last": func(dir string) (int64, error) {
		e, err := Last(dir)
		if c, ok := DamagedAtEnd(err); ok {
			return c.Kept, err
		}
		return e.Seq, err
	},
}

// TestEndOfAJournalAndItsHead is the table of the package documentation: what
// each combination of the end of the events and head.json means to every reader
// and to Open.
func TestEndOfAJournalAndItsHead(t *testing.T) {
	const (
		normal  = "normal"
		atEnd   = "damaged at the end"
		corrupt = "corrupt"
	)
	o, path, whole := written(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	upTo := func(n int) []byte { return bytes.Join(lines[:n], nil) }
	head := func(n int, open bool) []byte {
		b, err := anchor{Seq: int64(n), Hash: hashLine(bytes.TrimSuffix(lines[n-1], []byte("\n"))), Open: open}.line()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	changedLast := bytes.Replace(whole, []byte(`"five"`), []byte(`"5ive"`), 1)
	torn := []byte(`{"seq":6,"ti`)
	for name, c := range map[string]struct {
		reason     string
		file, head []byte
		want       string
		kept       int64
		missing    int64
	}{
		"no head":                  {"killed before its first Sync", whole, nil, normal, 5, 0},
		"no head, torn":            {"killed in its first writes", append(upTo(3), torn...), nil, normal, 3, 0},
		"empty head":               {"the machine crashed after a head was replaced", upTo(4), []byte{}, normal, 4, 0},
		"behind":                   {"a process writes, or was killed, after a Sync", whole, head(3, true), normal, 5, 0},
		"behind, torn":             {"killed in a write after a Sync", append(upTo(5), torn...), head(3, true), normal, 5, 0},
		"behind, closed":           {"resumed after a suspension, and killed", whole, head(3, false), normal, 5, 0},
		"at the head":              {"killed just after a Sync", whole, head(5, true), normal, 5, 0},
		"at the head, torn":        {"killed in the write after a Sync", append(upTo(5), torn...), head(5, true), normal, 5, 0},
		"at the head, zeros":       {"a crash of the machine leaves blocks of zeros", append(upTo(5), make([]byte, 512)...), head(5, true), normal, 5, 0},
		"closed":                   {"closed in order", whole, head(5, false), normal, 5, 0},
		"closed, torn":             {"killed in its first write after it was taken up", append(upTo(5), torn...), head(5, false), normal, 5, 0},
		"cut by one line":          {"events that were durable are gone", upTo(4), head(5, true), atEnd, 4, 1},
		"cut in the last line":     {"the rest of a line that was durable is gone", whole[:len(whole)-5], head(5, true), atEnd, 4, 1},
		"cut by the last newline":  {"a line without its end is not complete", whole[:len(whole)-1], head(5, true), atEnd, 4, 1},
		"cut after it was closed":  {"the end of a run is gone", upTo(4), head(5, false), atEnd, 4, 1},
		"cut in the middle":        {"many events are gone", upTo(2), head(5, true), atEnd, 2, 3},
		"last line changed":        {"no later line vouches for it, the head does", changedLast, head(5, true), atEnd, 5, 0},
		"last line changed, later": {"the same after it was closed", changedLast, head(5, false), atEnd, 5, 0},
		"last line is no event":    {"a change that makes it something else", append(upTo(4), bytes.Replace(lines[4], []byte("{"), []byte("["), 1)...), head(5, true), atEnd, 4, 1},
		"half a head":              {"killed while one of its two lines was replaced", whole, append(head(3, true), head(5, true)[:60]...), normal, 5, 0},
		"mixed head":               {"the machine crashed while one of its two lines was replaced", whole, append(append(head(4, true)[:20], head(3, true)[20:]...), head(3, true)...), normal, 5, 0},
		"two heads":                {"the later one counts", upTo(4), append(head(5, true), head(3, true)...), atEnd, 4, 1},
		"head of an older version": {"it has no sum", upTo(4), []byte(strings.Split(string(head(5, false)), ",\"sum\"")[0] + "}\n"), atEnd, 4, 1},
		"head is not a head":       {"nothing vouches for the end", whole, []byte("{}\n"), atEnd, 5, 0},
		"everything cut":           {"a run that began has events", []byte{}, head(5, true), atEnd, 0, 5},
		"changed before the head":  {"the chain finds it", bytes.Replace(whole, []byte(`"two"`), []byte(`"2wo"`), 1), head(5, true), corrupt, 2, 0},
		"rewritten behind it":      {"the whole chain was written anew", nil, head(3, true), corrupt, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := c.file
			if file == nil { // a chain that is whole and is another one
				other := options(t)
				w := create(t, other)
				appendText(t, w, "1", "2", "3", "4", "5")
				closeWriter(t, w)
				var err error
				if file, err = os.ReadFile(filepath.Join(other.Dir, filepath.Base(path))); err != nil {
					t.Fatal(err)
				}
			}
			reset := func() {
				rewrite(t, path, file)
				unanchor(t, o.Dir)
				if c.head != nil {
					rewrite(t, filepath.Join(o.Dir, anchorFile), c.head)
				}
			}
			reset()
			for reader, read := range readers {
				n, err := read(o.Dir)
				switch damage, end := DamagedAtEnd(err); {
				case c.want == normal && (err != nil || n != c.kept):
					t.Errorf("%s, %s: %d events, %v", c.reason, reader, n, err)
				case c.want == atEnd && (!end || n != c.kept || damage.Kept != c.kept || damage.Missing != c.missing):
					t.Errorf("%s, %s: %d events, %v, want %d and %d missing", c.reason, reader, n, err, c.kept, c.missing)
				case c.want == corrupt && (reader == "read" || reader == "verify") && (err == nil || end):
					t.Errorf("%s, %s: %v", c.reason, reader, err)
				}
			}
			w, err := Open(context.Background(), o)
			if c.want == normal {
				if err != nil || w.Damage() != nil {
					t.Fatalf("%s: Open: %v", c.reason, err)
				}
				appendText(t, w, "resumed")
				closeWriter(t, w)
				if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != c.kept+1 || !r.Anchored {
					t.Errorf("%s: after a resume %+v, %v", c.reason, r, err)
				}
				return
			}
			if !isCorrupt(err) {
				t.Fatalf("%s: Open: %v", c.reason, err)
			}
			accept := o
			accept.AcceptEnd = true
			if w, err = Open(context.Background(), accept); c.want == corrupt || c.kept == 0 {
				if !isCorrupt(err) {
					t.Errorf("%s: accepted: %v", c.reason, err)
				}
				return
			}
			if err != nil || w.Damage() == nil || w.Damage().Kept != c.kept {
				t.Fatalf("%s: accepted: %v", c.reason, err)
			}
			// Killed before anything is recorded of it, the damage is still known.
			appendText(t, w, "a", "b", "c", "d", "e")
			again := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(again, os.DirFS(o.Dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(context.Background(), again); err == nil {
				t.Errorf("%s: forgotten before it was recorded", c.reason)
			} else if _, end := DamagedAtEnd(err); !end {
				t.Errorf("%s: %v", c.reason, err)
			}
			closeWriter(t, w)
			if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != c.kept+5 || !r.Anchored {
				t.Errorf("%s: after an accepted resume %+v, %v", c.reason, r, err)
			}
		})
	}
}

// TestTheHeadIsNeverNewerThanWhatIsDurable follows every sync and every write of
// the head: at no moment does it name an event that a crash could take.
func TestTheHeadIsNeverNewerThanWhatIsDurable(t *testing.T) {
	o := options(t)
	durable := int64(0)
	var w *Writer
	o.Sync = func(f *os.File) error {
		if strings.HasPrefix(filepath.Base(f.Name()), "events-") {
			b, err := os.ReadFile(f.Name())
			if err != nil {
				return err
			}
			durable = int64(bytes.Count(b, []byte("\n")))
		}
		return nil
	}
	heads := 0
	o.Write = func(f *os.File, b []byte) (int, error) {
		var a anchor
		first, _, _ := bytes.Cut(b, []byte("\n"))
		if filepath.Base(f.Name()) == anchorTemp && json.Unmarshal(first, &a) == nil {
			if heads++; a.Seq > durable {
				t.Errorf("the head names event %d, %d are durable", a.Seq, durable)
			}
		}
		return f.Write(b)
	}
	w = create(t, o)
	for range 3 {
		appendText(t, w, "a", "b")
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil { // nothing new: no head
			t.Fatal(err)
		}
	}
	closeWriter(t, w)
	if heads != 4 {
		t.Errorf("%d heads written", heads)
	}
}

func TestAHeadThatCannotBeWrittenDoesNotStopTheRun(t *testing.T) {
	o := options(t)
	o.Sync = volatile
	full := true
	o.Write = func(f *os.File, b []byte) (int, error) {
		if full && filepath.Base(f.Name()) == anchorTemp {
			n, _ := f.Write(b[:4])
			return n, errDied
		}
		return f.Write(b)
	}
	w := create(t, o)
	appendText(t, w, "a")
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	appendText(t, w, "b")
	full = false
	closeWriter(t, w)
	if r, err := Verify(context.Background(), o.Dir); err != nil || !r.Anchored || r.Events != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEveryCutBelowTheHeadIsFound cuts the file at every byte.
func TestEveryCutBelowTheHeadIsFound(t *testing.T) {
	o, path, whole := written(t)
	for n := range len(whole) {
		rewrite(t, path, whole[:n])
		want := int64(bytes.Count(whole[:n], []byte("\n")))
		for name, read := range readers {
			got, err := read(o.Dir)
			c, end := DamagedAtEnd(err)
			if !end || got != want || c.Kept != want || c.Missing != 5-want {
				t.Fatalf("cut at byte %d, %s: %d events, %v", n, name, got, err)
			}
		}
	}
	rewrite(t, path, whole)
	if err := CheckEnd(o.Dir); err != nil {
		t.Error(err)
	}
	if err := CheckEnd(t.TempDir()); err != nil {
		t.Errorf("a folder without a journal: %v", err)
	}
}

// TestLastFindsTheLineBeforeANewDay: a file that was just begun has no line.
func TestLastFindsTheLineBeforeANewDay(t *testing.T) {
	o, _, _ := written(t)
	for _, content := range []string{"", `{"seq":6`} {
		rewrite(t, filepath.Join(o.Dir, "events-20260505.jsonl"), []byte(content))
		e, err := Last(o.Dir)
		if err != nil || e.Seq != 5 {
			t.Errorf("with %q: event %d, %v", content, e.Seq, err)
		}
	}
}
