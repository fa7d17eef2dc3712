package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/inbox"
)

func request(id string) Request {
	return Request{
		ID: id, Run: "r", Call: "c1", Binding: "b", State: message.Approved, Scope: message.Once,
		By: "jane@pts/1", Time: time.Now().UnixMilli(),
	}
}

func yes(*Request) error { return nil }

func TestInboxTakesTheFirstRequest(t *testing.T) {
	b := NewInbox(t.TempDir(), time.Now)
	if _, ok := b.take("c1", yes, func(string, error) { t.Error("refused") }); ok {
		t.Error("there is no inbox yet")
	}
	other := request("ans-0")
	other.Call = "c2"
	for _, r := range []Request{request("ans-2"), request("ans-1"), other} {
		if err := b.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"ans-1", "ans-2"} {
		r, ok := b.take("c1", yes, func(name string, why error) { t.Errorf("%s: %v", name, why) })
		if !ok || r.ID != want || !b.Has("c1", want) {
			t.Fatalf("got %+v, want %s, which stays until it is written down", r, want)
		}
		if err := errors.Join(b.Remove("c1", want), b.Remove("c1", want)); err != nil {
			t.Error(err)
		}
	}
	if _, ok := b.take("c1", yes, nil); ok {
		t.Error("a request for another call was taken")
	}
	if !b.Has("c2", "ans-0") {
		t.Error("a request for another call was removed")
	}
	info, err := os.Stat(b.folder.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	file, err := os.Stat(filepath.Join(b.folder.Dir, file("c2", "ans-0")))
	if err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", file.Mode(), err)
	}
}

func TestLastAnswerReplacesWhatNobodyHasTaken(t *testing.T) {
	b := NewInbox(t.TempDir(), time.Now)
	other, denial := request("ans-0"), request("ans-2")
	other.Call = "c2"
	denial.State, denial.Scope = message.Rejected, ""
	if err := errors.Join(b.Put(other), b.Replace(request("ans-1")), b.Replace(denial)); err != nil {
		t.Fatal(err)
	}
	if r := b.Left("c1", "b"); r == nil || r.ID != "ans-2" {
		t.Errorf("left is %+v, want the denial", r)
	}
	if r := b.Left("c1", "another question"); r != nil {
		t.Errorf("left for another question: %+v", r)
	}
	r, ok := b.take("c1", yes, func(name string, why error) { t.Errorf("%s: %v", name, why) })
	if !ok || r.ID != "ans-2" || r.State != message.Rejected {
		t.Errorf("got %+v, want the denial: the approval was taken back", r)
	}
	if b.Has("c1", "ans-1") || !b.Has("c2", "ans-0") {
		t.Error("the approval must be gone, and what is for another call must stay")
	}
}

func TestInboxRefusesWhatIsNoRequestOfOurs(t *testing.T) {
	changed := func(change func(*Request)) []byte {
		r := request("ans-1")
		change(&r)
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	good := changed(func(*Request) {})
	for name, c := range map[string]struct {
		reason string
		raw    []byte
		then   func(b *Inbox, path string) error
		why    string
	}{
		"another user": {"only the run's own user may answer", good, func(b *Inbox, _ string) error { b.folder.UID++; return nil }, "another user"},
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
		"folder": {"a folder is no request", good, func(_ *Inbox, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "regular file"},
		"large":       {"nobody writes that much", []byte(strings.Repeat(" ", requestLimit) + string(good)), nil, "larger than"},
		"empty":       {"nothing is no answer", nil, nil, "cannot be read"},
		"no JSON":     {"it was cut off", good[:len(good)-2], nil, "cannot be read"},
		"more":        {"something stands behind it", append(append([]byte{}, good...), "{}"...), nil, "text behind"},
		"field":       {"a field that we would overlook", []byte(strings.Replace(string(good), `"by"`, `"bye"`, 1)), nil, "unknown field"},
		"other call":  {"it is for another call", changed(func(r *Request) { r.Call = "c2" }), nil, "its name"},
		"other id":    {"its id is that of another", changed(func(r *Request) { r.ID = "ans-2" }), nil, "its name"},
		"path":        {"its id leads elsewhere", changed(func(r *Request) { r.ID = "../x" }), nil, "its name"},
		"no answer":   {"it says neither yes nor no", changed(func(r *Request) { r.State = message.Expired }), nil, "neither"},
		"always no":   {"a denial is never for always", changed(func(r *Request) { r.State, r.Scope = message.Rejected, message.Always }), nil, "scope"},
		"scope":       {"a scope that is none", changed(func(r *Request) { r.Scope = "Ever" }), nil, "scope"},
		"nobody":      {"nobody answered", changed(func(r *Request) { r.By = "" }), nil, "who"},
		"long reason": {"a text for the model is short", changed(func(r *Request) { r.Reason = strings.Repeat("x", reasonLimit+1) }), nil, "reason"},
		"old":         {"too old to be used", changed(func(r *Request) { r.Time -= Life.Milliseconds() + 1000 }), nil, "older"},
		"future":      {"from a clock that is wrong", changed(func(r *Request) { r.Time += 2 * skew.Milliseconds() }), nil, "future"},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewInbox(t.TempDir(), time.Now)
			check(t, os.Mkdir(b.folder.Dir, 0o700))
			path := filepath.Join(b.folder.Dir, file("c1", "ans-1"))
			check(t, os.WriteFile(path, c.raw, 0o600))
			if c.then != nil {
				check(t, c.then(b, path))
			}
			var why []string
			r, ok := b.take("c1", yes, func(name string, err error) { why = append(why, name+": "+err.Error()) })
			if ok || len(why) != 1 || !strings.Contains(why[0], c.why) {
				t.Errorf("%s: got %+v, refused %q, want %q", c.reason, r, why, c.why)
			}
			if len(why) == 1 && strings.Contains(why[0], ".json") {
				if _, err := os.Lstat(path); err == nil {
					t.Error("what is refused is still there")
				}
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPutLeavesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	b := NewInbox(dir, time.Now)
	bad := request("ans-1")
	bad.Reason = "\xff"
	if err := b.Put(bad); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("got %v", err)
	}
	check(t, os.WriteFile(b.folder.Dir, nil, 0o600))
	if err := b.Put(request("ans-1")); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("got %v", err)
	}
	check(t, os.Remove(b.folder.Dir))
	check(t, os.Mkdir(b.folder.Dir, 0o700))
	check(t, os.Mkdir(filepath.Join(b.folder.Dir, file("c1", "ans-1")), 0o700)) // in the way of the rename
	if err := b.Put(request("ans-1")); err == nil {
		t.Error("a folder was replaced")
	}
	left, err := filepath.Glob(filepath.Join(b.folder.Dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := b.Remove("c1", "../../x"); err != nil {
		t.Errorf("an id that is none: %v", err)
	}
}

// A process that is killed while it leaves an answer does not keep the next one
// from leaving the same.
func TestPutGoesOnWhereAnotherWasKilled(t *testing.T) {
	b := NewInbox(t.TempDir(), time.Now)
	check(t, os.Mkdir(b.folder.Dir, 0o700))
	precious := filepath.Join(t.TempDir(), "precious")
	check(t, os.WriteFile(precious, []byte("as it was"), 0o600))
	half := filepath.Join(b.folder.Dir, "."+file("c1", "ans-1"))
	for name, leave := range map[string]func() error{
		"half a file": func() error { return os.WriteFile(half, []byte(`{"id":`), 0o600) },
		"a link":      func() error { return os.Symlink(precious, half) },
	} {
		check(t, leave())
		if err := b.Put(request("ans-1")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !b.Has("c1", "ans-1") {
			t.Errorf("%s: it is not there", name)
		}
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "as it was" {
		t.Errorf("a link was followed: %q, %v", text, err)
	}
}

func FuzzRequest(f *testing.F) {
	good, err := json.Marshal(request("ans-1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"id":"a","state":"approved","by":"x","time":1e300}`))
	f.Add([]byte("{}{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRequest(raw)
		if err != nil {
			return
		}
		if r.Check() == nil && (strings.ContainsAny(r.ID, "/.") || r.State != message.Approved && r.State != message.Rejected) {
			t.Errorf("taken: %+v", r)
		}
	})
}

func TestFloodDoesNotHideAnAnswer(t *testing.T) {
	b := NewInbox(t.TempDir(), time.Now)
	if err := b.Put(request("zzz")); err != nil {
		t.Fatal(err)
	}
	// Junk under other names and under that of the call, and what cannot be
	// removed, all sorted before the answer.
	for i := range 700 {
		write := []error{os.WriteFile(filepath.Join(b.folder.Dir, fmt.Sprintf("junk-%d", i)), nil, 0o600), os.WriteFile(filepath.Join(b.folder.Dir, fmt.Sprintf("%s0%03d.json", prefix("c1"), i)), []byte("{}"), 0o600)}
		if i < 300 {
			write = append(write, os.MkdirAll(filepath.Join(b.folder.Dir, fmt.Sprintf("%s00%03d.json", prefix("c1"), i), "x"), 0o700))
		}
		if err := errors.Join(write...); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for look := 1; ; look++ {
		r, ok := b.take("c1", yes, func(string, error) { refused++ })
		if ok {
			if r.ID != "zzz" {
				t.Errorf("took %+v", r)
			}
			break
		}
		if look == 5 {
			t.Fatalf("the answer is not found; %d refused", refused)
		}
	}
	if refused < 700 {
		t.Errorf("%d refused, want all that is none", refused)
	}
}

func TestFullFolderIsToldOf(t *testing.T) {
	b := NewInbox(t.TempDir(), time.Now)
	if err := os.Mkdir(b.folder.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(b.folder.Dir, "0")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range inbox.Looked + inbox.Most {
		if err := os.Link(empty, filepath.Join(b.folder.Dir, fmt.Sprintf("junk-%d", i))); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
	}
	var why []string
	b.take("c1", yes, func(_ string, err error) { why = append(why, err.Error()) })
	if len(why) != 1 || !strings.Contains(why[0], "more than 16384 files") {
		t.Errorf("got %q", why)
	}
}
