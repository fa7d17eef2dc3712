package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// opened is the open inbox of the run r, and the reasons of its refusals.
func opened(t *testing.T) (b *Inbox, why *[]string) {
	t.Helper()
	b, why = New("r", t.TempDir()), &[]string{}
	b.Refused = func(name string, err error) { *why = append(*why, name+": "+err.Error()) }
	check(t, b.Open())
	return b, why
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func hello(id string) message.Incoming {
	return message.Incoming{ID: id, Text: "hello", By: "jane", PostedAt: 5}
}

// ids are those of the messages in an inbox.
func ids(b *Inbox) (ids []string) {
	for _, m := range b.Take(context.Background()) {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestMessagesStayUntilTheyAreHeard(t *testing.T) {
	b, why := opened(t)
	for _, id := range []string{"in-2", "in-1", "in-3"} {
		check(t, b.Put(hello(id)))
	}
	first := b.Take(t.Context())
	if d := cmp.Diff([]message.Incoming{hello("in-1"), hello("in-2"), hello("in-3")}, first); d != "" {
		t.Errorf("in the order of their ids (-want +got):\n%s", d)
	}
	b.Heard(first[:2])
	if d := cmp.Diff([]string{"in-3"}, ids(b)); d != "" {
		t.Errorf("after two were heard (-want +got):\n%s", d)
	}
	b.Heard(first) // again
	if left := ids(b); left != nil || len(*why) > 0 {
		t.Errorf("left %q, refused %q", left, *why)
	}
	info, err := os.Stat(b.folder.Dir)
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v", info.Mode())
	}
}

func TestAClosedInboxTakesNothing(t *testing.T) {
	b, _ := opened(t)
	check(t, b.Put(hello("in-1")))
	if b.Close() {
		t.Error("closed with a message in it")
	}
	b.Heard(b.Take(t.Context()))
	if !b.Close() {
		t.Error("an empty inbox stays open")
	}
	if err := b.Put(hello("in-2")); !errors.Is(err, ErrClosed) {
		t.Errorf("put into a closed inbox: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(b.folder.Scratch, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if got := b.Take(t.Context()); got != nil || !b.Close() {
		t.Errorf("took %v of a closed inbox", got)
	}
	check(t, b.Open())
	check(t, b.Put(hello("in-2")))
	if err := New("r", filepath.Join(t.TempDir(), "none")).Put(hello("in-1")); !errors.Is(err, ErrClosed) {
		t.Errorf("put into the inbox of no run: %v", err)
	}
}

func TestWhatWasPutAsideComesBack(t *testing.T) {
	b, _ := opened(t)
	if n := b.Shut(); n != 0 {
		t.Errorf("%d of none", n)
	}
	check(t, b.Open())
	check(t, b.Put(hello("in-1")))
	check(t, b.Put(hello("in-2")))
	if n := b.Shut(); n != 2 {
		t.Errorf("%d unread", n)
	}
	if err := b.Put(hello("in-3")); !errors.Is(err, ErrClosed) {
		t.Errorf("put into a shut inbox: %v", err)
	}
	// The process died before it could record the end of the run.
	check(t, b.Open())
	if d := cmp.Diff([]string{"in-1", "in-2"}, ids(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	check(t, b.Put(hello("in-3")))
	check(t, os.Mkdir(b.unread, 0o700))
	check(t, os.WriteFile(filepath.Join(b.unread, "old"), nil, 0o600))
	if n := b.Shut(); n != 3 || exists(filepath.Join(b.unread, "old")) || exists(b.folder.Dir) {
		t.Errorf("%d unread", n)
	}
	check(t, os.MkdirAll(filepath.Join(b.unread, "junk", "more"), 0o700))
	b.Discard()
	if exists(b.unread) || exists(b.folder.Dir) {
		t.Error("something is left of a run that has ended")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Every message that Put has acknowledged was taken before the inbox was closed.
func TestNothingIsLostBetweenTheLastLookAndTheEnd(t *testing.T) {
	for range 5 {
		b, _ := opened(t)
		var senders sync.WaitGroup
		var mu sync.Mutex
		sent, taken := map[string]bool{}, map[string]bool{}
		for s := range 4 {
			senders.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("in-%d-%d", s, i)
					err := b.Put(hello(id))
					if errors.Is(err, ErrClosed) {
						return
					}
					mu.Lock()
					sent[id] = err == nil
					mu.Unlock()
				}
			})
		}
		for range 5 {
			for closed := false; !closed; closed = b.Close() {
				messages := b.Take(t.Context())
				for _, m := range messages {
					taken[m.ID] = true
				}
				b.Heard(messages)
			}
		}
		senders.Wait()
		if d := cmp.Diff(sent, taken); d != "" {
			t.Fatalf("(-sent +taken):\n%s", d)
		}
	}
}

func TestWhatIsNoMessageIsRemoved(t *testing.T) {
	changed := func(change func(*letter)) []byte {
		l := letter{"r", hello("in-1")}
		change(&l)
		b, err := json.Marshal(l)
		check(t, err)
		return b
	}
	good := changed(func(*letter) {})
	for name, c := range map[string]struct {
		reason string
		raw    []byte
		then   func(b *Inbox, path string) error
		why    string
	}{
		"another user": {"only the run's own user may send", good, func(b *Inbox, _ string) error { b.folder.UID++; return nil }, "another user"},
		"writable":     {"others may have written it", good, func(_ *Inbox, path string) error { return os.Chmod(path, 0o622) }, "other users"},
		"open folder":  {"others may have put it there", good, func(b *Inbox, _ string) error { return os.Chmod(b.folder.Dir, 0o770) }, "other users"},
		"link": {"it may lead anywhere", good, func(b *Inbox, path string) error {
			return errors.Join(os.Rename(path, b.folder.Dir+"-moved"), os.Symlink(b.folder.Dir+"-moved", path))
		}, "not a regular file"},
		"linked folder": {"so may the folder", good, func(b *Inbox, _ string) error {
			return errors.Join(os.Rename(b.folder.Dir, b.folder.Dir+"-moved"), os.Symlink(b.folder.Dir+"-moved", b.folder.Dir))
		}, "no folder"},
		"pipe": {"reading it would wait for ever", good, func(_ *Inbox, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, "regular file"},
		"folder": {"a folder is no message", good, func(_ *Inbox, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "regular file"},
		"large":     {"nobody writes that much", append(make([]byte, fileLimit), good...), nil, "larger than"},
		"empty":     {"nothing is no message", nil, nil, "cannot be read"},
		"no JSON":   {"it was cut off", good[:len(good)-2], nil, "cannot be read"},
		"more":      {"something stands behind it", append(append([]byte{}, good...), "{}"...), nil, "text behind"},
		"field":     {"a field that we would overlook", []byte(strings.Replace(string(good), `"by"`, `"bye"`, 1)), nil, "unknown field"},
		"other run": {"it was copied from another run", changed(func(l *letter) { l.Run = "q" }), nil, "another run"},
		"other id":  {"its id is that of another", changed(func(l *letter) { l.ID = "in-2" }), nil, "its name"},
		"silent":    {"it says nothing", changed(func(l *letter) { l.Text = " \n" }), nil, "says nothing"},
		"long":      {"the text is too long", changed(func(l *letter) { l.Text = strings.Repeat("x", TextLimit+1) }), nil, "longer than"},
		"long name": {"nobody is called that", changed(func(l *letter) { l.By = strings.Repeat("x", byLimit+1) }), nil, "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			b, why := opened(t)
			path := filepath.Join(b.folder.Dir, "in-1.json")
			check(t, os.WriteFile(path, c.raw, 0o600))
			if c.then != nil {
				check(t, c.then(b, path))
			}
			got := b.Take(t.Context())
			if len(got) > 0 || len(*why) != 1 || !strings.Contains((*why)[0], c.why) {
				t.Errorf("%s: got %+v, refused %q, want %q", c.reason, got, *why, c.why)
			}
			if len(*why) == 1 && strings.Contains((*why)[0], ".json") && exists(path) {
				t.Error("what is refused is still there")
			}
		})
	}
}

func TestPutRefusesWhatIsNoMessage(t *testing.T) {
	b, _ := opened(t)
	for name, m := range map[string]message.Incoming{
		"no id":     {Text: "x"},
		"path":      {ID: "../x", Text: "x"},
		"hidden":    {ID: ".x", Text: "x"},
		"long id":   {ID: strings.Repeat("x", 65), Text: "x"},
		"silent":    {ID: "in-1", Text: "\t"},
		"no UTF-8":  {ID: "in-1", Text: "\xff"},
		"too long":  {ID: "in-1", Text: strings.Repeat("x", TextLimit+1)},
		"no name":   {ID: "in-1", Text: "x", By: "\xff"},
		"long name": {ID: "in-1", Text: "x", By: strings.Repeat("x", byLimit+1)},
	} {
		if err := b.Put(m); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	check(t, os.Mkdir(filepath.Join(b.folder.Dir, "in-1.json"), 0o700)) // in the way of the rename
	if err := b.Put(hello("in-1")); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := filepath.Glob(filepath.Join(b.folder.Scratch, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	long := message.Incoming{ID: "in-2", Text: strings.Repeat("\x01", TextLimit), By: "jane"} // six bytes each in JSON
	check(t, b.Put(long))
	if got := b.Take(t.Context()); len(got) != 1 || got[0].Text != long.Text {
		t.Error("the longest message cannot be read")
	}
}

func TestAFloodDoesNotHideAMessage(t *testing.T) {
	b, why := opened(t)
	check(t, b.Put(hello("zzz")))
	// Junk, and entries that cannot be removed, all sorted before the message.
	for i := range 700 {
		check(t, os.WriteFile(filepath.Join(b.folder.Dir, fmt.Sprintf("junk-%d", i)), nil, 0o600))
		if i < 300 {
			check(t, os.MkdirAll(filepath.Join(b.folder.Dir, fmt.Sprintf("a-%d", i), "x"), 0o700))
		}
	}
	for look := 1; ; look++ {
		if got := ids(b); len(got) > 0 {
			break
		}
		if look == 5 {
			t.Fatalf("the message is not found; %d refused", len(*why))
		}
	}
	if b.Close() {
		t.Error("closed with a message in it")
	}
	if n := b.Shut(); n != Most+1 { // as many as are looked at
		t.Errorf("%d files put aside", n)
	}
	if err := b.Put(hello("zzzz")); !errors.Is(err, ErrClosed) {
		t.Errorf("what cannot be removed keeps the inbox open: %v", err)
	}
}

func TestOneLookTakesSoMuch(t *testing.T) {
	b, _ := opened(t)
	for i := range 6 {
		check(t, b.Put(message.Incoming{ID: fmt.Sprint("in-", i), Text: strings.Repeat("x", TextLimit)}))
	}
	first := b.Take(t.Context())
	if len(first) != takenTexts/TextLimit {
		t.Errorf("%d at one look", len(first))
	}
	b.Heard(first)
	if rest := ids(b); len(rest) != 2 || rest[0] != "in-4" {
		t.Errorf("then %q", rest)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if got := b.Take(stopped); got != nil {
		t.Errorf("%d taken for a run that was stopped", len(got))
	}
}

func TestAFullFolderIsToldOf(t *testing.T) {
	b, why := opened(t)
	empty := filepath.Join(b.folder.Dir, "0")
	check(t, os.WriteFile(empty, nil, 0o600))
	for i := range Looked + Most {
		if err := os.Link(empty, filepath.Join(b.folder.Dir, fmt.Sprintf("junk-%d", i))); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
	}
	b.Take(t.Context())
	if len(*why) == 0 || !strings.Contains((*why)[0], "more than 16384 files") {
		t.Errorf("got %.200q", *why)
	}
}

func FuzzMessage(f *testing.F) {
	good, err := json.Marshal(letter{"r", hello("in-1")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"run":"r","id":"in-1","text":"x","postedAt":1e300}`))
	f.Add([]byte(`{"run":"r","id":"in-1","text":"\ud800","by":null}`))
	f.Add([]byte("{}{}"))
	dir := f.TempDir()
	b := New("r", dir)
	if err := b.Open(); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(b.folder.Dir, "in-1.json")
	f.Fuzz(func(t *testing.T, raw []byte) {
		check(t, os.WriteFile(path, raw, 0o600))
		for _, m := range b.Take(t.Context()) {
			if m.ID != "in-1" || Check(m) != nil {
				t.Errorf("taken: %+v", m)
			}
			again := hello("in-2")
			again.Text, again.By, again.PostedAt = m.Text, m.By, m.PostedAt
			check(t, b.Put(again))
			both := b.Take(t.Context())
			if len(both) != 2 || both[0].Text != both[1].Text || both[0].By != both[1].By || both[0].PostedAt != both[1].PostedAt {
				t.Errorf("another one: %+v", both)
			}
			b.Heard(both)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

// BenchmarkTakeNothing is the cost of a request for a run without messages.
func BenchmarkTakeNothing(b *testing.B) {
	i := New("r", b.TempDir())
	if err := i.Open(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if i.Take(b.Context()) != nil {
			b.Fatal("something")
		}
	}
}
