package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

func TestARunIsAsItWasWritten(t *testing.T) {
	k := ended(t)
	v := k.verify()
	if !v.OK || len(v.Problems)+len(v.Notes) > 0 || v.Run != k.id || !v.Journal.Closed || v.Journal.Vouched != v.Journal.Events || v.AuditLog.State != LogComplete || v.Blobs.Checked != 6 {
		t.Errorf("got %+v, journal %+v, log %+v, blobs %+v", v, v.Journal, v.AuditLog, v.Blobs)
	}
	if seq, hash, err := journal.Head(k.dir); err != nil || seq != v.Journal.Events || hash != v.Journal.Head {
		t.Errorf("head %d %s, %v; the verdict is %+v", seq, hash, err, v.Journal)
	}
}

// A byte that was changed, removed, inserted or appended in any file of a run that has ended
// is found, and the file is named.
func TestEveryChangedByteOfARunIsFound(t *testing.T) {
	k := ended(t).copied()
	for _, name := range k.everyFile() {
		whole := k.read(name)
		step := 3
		if strings.HasPrefix(name, "events-") {
			step = 41 // the journal's own test changes every byte
		}
		try := func(what string, changed []byte) {
			t.Helper()
			k.write(name, changed)
			v := k.verify()
			if v.OK || len(v.Problems) == 0 {
				t.Fatalf("%s: %s is not found", name, what)
			}
			p := v.Problems[0]
			if p.File == "" || p.Expected == "" || p.Found == "" || p.Problem == "" {
				t.Errorf("%s: %s: %+v", name, what, p)
			}
			if p.File != name && !strings.HasPrefix(name, "events-") && name != "head.json" {
				t.Errorf("%s: %s is found in %s", name, what, p.File)
			}
		}
		for at := 0; at < len(whole); at += step {
			changed := bytes.Clone(whole)
			changed[at] ^= 1 << (at % 8)
			try(fmt.Sprintf("byte %d changed", at), changed)
			if at%5 == 0 {
				try(fmt.Sprintf("byte %d removed", at), append(bytes.Clone(whole[:at]), whole[at+1:]...))
				try(fmt.Sprintf("cut at %d", at), whole[:at])
			}
		}
		for _, more := range []string{"\n", "x", "{}\n"} {
			try(fmt.Sprintf("%q appended", more), append(bytes.Clone(whole), more...))
		}
		if err := os.Remove(k.path(name)); err != nil {
			t.Fatal(err)
		}
		if v := k.verify(); v.OK {
			t.Errorf("%s is gone, and nothing is found", name)
		}
		k.write(name, whole)
	}
	if v := k.verify(); !v.OK {
		t.Errorf("whole again: %+v", v.Problems)
	}
}

func TestAChangedAuditLogIsLocated(t *testing.T) {
	k := ended(t).copied()
	whole := k.read(logName)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	at := len(lines[0]) + len(lines[1]) + bytes.Index(lines[2], []byte(`"decision":"allow"`)) + len(`"decision":"`)
	k.write(logName, append(append(bytes.Clone(whole[:at]), "denyy"...), whole[at+5:]...))
	v := k.verify()
	if v.OK || len(v.Problems) != 1 || v.Problems[0].File != logName || v.Problems[0].Line != 3 || v.Problems[0].Byte != int64(at) || !strings.HasPrefix(v.Problems[0].Expected, `"allow`) {
		t.Errorf("byte %d: %+v", at, v.Problems)
	}
	// Records that were moved, and a record of another run.
	lines[2], lines[3] = lines[3], lines[2]
	k.write(logName, bytes.Join(lines, nil))
	if v := k.verify(); v.OK || v.Problems[0].Line != 3 {
		t.Errorf("moved: %+v", v.Problems)
	}
}

func TestBlobsAreCompared(t *testing.T) {
	for what, harm := range map[string]func(k *kept) error{
		"a file of another name": func(k *kept) error { return os.WriteFile(k.path("blobs/notes.txt"), []byte("x"), 0o600) },
		"a link":                 func(k *kept) error { return os.Symlink("/etc/passwd", k.path("blobs/"+strings.Repeat("a", 64))) },
		"a folder":               func(k *kept) error { return os.Mkdir(k.path("blobs/"+strings.Repeat("a", 64)), 0o700) },
		"content of a change":    func(k *kept) error { return os.Remove(k.path("blobs/" + sum(files["README.md"]))) },
		"swapped": func(k *kept) error {
			a, b := k.path("blobs/"+sum(files["README.md"])), k.path("blobs/"+sum(files["src/new.go"]))
			text, err := os.ReadFile(a)
			if err != nil {
				return err
			}
			return os.WriteFile(b, text, 0o600)
		},
	} {
		k := ended(t).copied()
		if err := harm(k); err != nil {
			t.Fatal(err)
		}
		if v := k.verify(); v.OK || !strings.HasPrefix(v.Problems[0].File, "blobs/") {
			t.Errorf("%s: %+v", what, v.Problems)
		}
	}
	k := ended(t).copied()
	if err := os.WriteFile(k.path("blobs/.blob-123"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := k.verify(); !v.OK || len(v.Notes) != 1 {
		t.Errorf("what a crash has left: %+v, %v", v.Problems, v.Notes)
	}
}

func TestTheHeadFromOutsideIsThatOfAnEvent(t *testing.T) {
	k := ended(t)
	whole := k.verify()
	var hashes []string
	if _, err := journal.Check(t.Context(), k.dir, func(l journal.Line) error { hashes = append(hashes, l.Prev); return nil }); err != nil {
		t.Fatal(err)
	}
	for reason, c := range map[string]struct {
		head Head
		ok   bool
	}{
		"that of the last event":            {Head{Hash: whole.Journal.Head, Seq: whole.Journal.Events}, true},
		"that of the last, without number":  {Head{Hash: whole.Journal.Head}, true},
		"that of an earlier event":          {Head{Hash: hashes[5], Seq: 5}, true},
		"that of another event":             {Head{Hash: hashes[5], Seq: 6}, false},
		"that of no event":                  {Head{Hash: "sha256:" + strings.Repeat("0", 64)}, false},
		"the last number with another hash": {Head{Hash: "sha256:" + strings.Repeat("0", 64), Seq: whole.Journal.Events}, false},
	} {
		c.head.From = "run/x"
		v, err := Verify(t.Context(), VerifyOptions{Dir: k.dir, Head: c.head})
		if err != nil || v.OK != c.ok {
			t.Errorf("%s: %+v, %v", reason, v, err)
		}
	}
	// An owner who writes the journal again gets past the chain, and not past this.
	again := ended(t)
	v, err := Verify(t.Context(), VerifyOptions{Dir: again.dir, Head: Head{Hash: whole.Journal.Head, From: "the receipt"}})
	if alone := again.verify(); err != nil || v.OK || !alone.OK {
		t.Errorf("written again: %+v, %v; without the head %v", v, err, alone.OK)
	}
	for _, text := range []string{"", "sha256:", "sha256:" + strings.Repeat("x", 64), "md5:1", "x:sha256:" + strings.Repeat("0", 64), "0:sha256:" + strings.Repeat("0", 64), strings.Repeat("0", 64)} {
		if h, err := ParseHead(text); err == nil {
			t.Errorf("%q is read as %+v", text, h)
		}
	}
	if h, err := ParseHead("12:" + whole.Journal.Head); err != nil || h.Seq != 12 || h.Hash != whole.Journal.Head {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestNothingFollowsTheEndOfARunButWhatPeopleDoWithItsChange(t *testing.T) {
	later := func(p event.Payload) *Verdict {
		k := ended(t).copied()
		w, _, err := trail.Open(t.Context(), journal.Options{Dir: k.dir, Run: k.id})
		if err != nil {
			t.Fatal(err)
		}
		k.w = w
		k.add("", "", p)
		k.close()
		return k.verify()
	}
	if v := later(event.WorkspaceApplied{Source: "/src", Files: 2, By: "jane"}); !v.OK || v.AuditLog.Records != 8 {
		t.Errorf("applied later: %+v, %+v", v.Problems, v.AuditLog)
	}
	if v := later(event.PublishItem{Name: "review", State: event.PublishSent, By: "jane"}); !v.OK || v.AuditLog.Records != 8 {
		t.Errorf("published later: %+v, %+v", v.Problems, v.AuditLog)
	}
	if v := later(event.Warning{Message: "so what"}); v.OK || !strings.Contains(v.Problems[0].Problem, "follows the end of the run") || v.Problems[0].Line == 0 {
		t.Errorf("another event: %+v", v.Problems)
	}
}

// killedRun is a run whose process was killed in the middle of a call.
func killedRun(t *testing.T) *kept {
	t.Helper()
	k := begin(t, t.TempDir(), "worker-1", nil)
	k.turn(allow, "one\n")
	if err := k.w.Sync(); err != nil {
		t.Fatal(err)
	}
	k.add("m2", "", event.StepStart{Step: 2})
	k.add("m2", "", event.ModelRequest{Step: 2})
	k.add("m2", "call_2", event.ToolInputStart{Tool: "bash"})
	k.add("m2", "", event.ModelResponse{})
	k.add("m2", "call_2", event.ToolInputEnd{Tool: "bash", Raw: "{}", Input: []byte("{}")})
	k.add("m2", "call_2", event.PolicyDecision{Decision: allow})
	k.add("m2", "call_2", event.ToolCall{Tool: "bash", Args: []byte("{}")})
	return k.copied()
}

func TestALogThatACrashLeftIncompleteIsCompleted(t *testing.T) {
	for what, left := range map[string]func(whole []byte) []byte{
		"nothing": func([]byte) []byte { return nil }, "a record": func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] }, "half a record": func(b []byte) []byte { return b[:len(b)/2] },
		"all but the line break": func(b []byte) []byte { return b[:len(b)-1] },
	} {
		k := killedRun(t)
		whole := k.read(logName)
		k.write(logName, left(whole))
		v := k.verify()
		if !v.OK || v.AuditLog.State != LogCompleted || v.AuditLog.Added == 0 || !bytes.Equal(k.read(logName), whole) {
			t.Errorf("%s: %+v, %+v", what, v, v.AuditLog)
		}
		if v := k.verify(); !v.OK || v.AuditLog.State != LogComplete {
			t.Errorf("%s, again: %+v, %+v", what, v.Problems, v.AuditLog)
		}
	}
	k := killedRun(t)
	if err := os.Remove(k.path(logName)); err != nil {
		t.Fatal(err)
	}
	if v := k.verify(); !v.OK || v.AuditLog.State != LogCompleted {
		t.Errorf("without a log: %+v, %+v", v.Problems, v.AuditLog)
	}
}

func TestARunIsVerifiedWhileItIsWritten(t *testing.T) {
	k := begin(t, t.TempDir(), "worker-1", nil)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				k.end()
				return
			default:
			}
			k.turn(allow, strings.Repeat("x", 2000+n))
			if n%3 == 0 {
				if err := k.w.Sync(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for n := range 50 {
		v := k.verify()
		if !v.OK || v.AuditLog.State == LogCompleted || v.AuditLog.State == LogChanged || !v.Journal.InProgress {
			t.Errorf("verification %d: %+v, %+v, %+v", n, v.Problems, v.Journal, v.AuditLog)
			break
		}
	}
	close(stop)
	wg.Wait()
	if v := k.verify(); !v.OK || v.AuditLog.State != LogComplete || !v.Journal.Closed {
		t.Errorf("in the end: %+v, %+v, %+v", v.Problems, v.Journal, v.AuditLog)
	}
}

func TestRunsBelowAreVouchedForByTheRunAbove(t *testing.T) {
	state := t.TempDir()
	top := begin(t, state, "worker-1", nil)
	child := begin(t, state, "helper-1", &event.Parent{Run: "worker-1", Call: "call_1", Root: "worker-1"})
	child.turn(allow, "x")
	child.end()
	_, head, err := journal.Head(child.dir)
	if err != nil {
		t.Fatal(err)
	}
	top.turn(allow, "y")
	in, call := "m9", "call_9"
	for _, p := range []event.Payload{
		event.ModelRequest{},
		event.ToolInputStart{Tool: "task"},
		event.ModelResponse{},
		event.ToolInputEnd{Tool: "task", Raw: "{}"},
		event.ToolResult{ToolResult: message.ToolResult{Text: "t", Child: &message.ChildRun{Run: "helper-1", Agent: "helper", Head: head}}},
	} {
		top.add(in, call, p)
	}
	top.end()
	if v := top.verify(); !v.OK || len(v.Children) != 1 || v.Children[0].Journal.Anchor != v.Children[0].Journal.Events {
		t.Fatalf("got %+v", v)
	}
	// The whole child written again, with a chain and a head that are right.
	if err := os.RemoveAll(child.dir); err != nil {
		t.Fatal(err)
	}
	again := begin(t, state, "helper-1", &event.Parent{Run: "worker-1", Call: "call_1", Root: "worker-1"})
	again.turn(deny, "")
	again.end()
	if v := top.verify(); v.OK || v.Children[0].OK || len(v.Problems) > 0 || !strings.Contains(v.Children[0].Problems[0].Problem, "the journal of run worker-1") {
		t.Errorf("got %+v", v.Children[0])
	}
	if err := os.RemoveAll(child.dir); err != nil {
		t.Fatal(err)
	}
	if v := top.verify(); !v.OK || len(v.Notes) != 1 {
		t.Errorf("without it: %+v", v)
	}
}

func TestWhatIsNoJournalIsNotVerified(t *testing.T) {
	dir := t.TempDir()
	for what, path := range map[string]string{"an empty folder": dir, "no folder": filepath.Join(dir, "gone"), "a device": "/dev/null"} {
		if found, err := Look(path); err == nil {
			t.Errorf("%s: %+v", what, found)
		}
	}
	k := ended(t)
	for _, path := range []string{k.dir, k.state, filepath.Dir(k.dir), k.path("head.json"), k.path(logName)} {
		if found, err := Look(path); err != nil || found.Kind != KindJournal || len(found.Dirs) != 1 || found.Dirs[0] != k.dir {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
}

func TestARunOfAnEarlierVersionHasNoAuditLog(t *testing.T) {
	state := t.TempDir()
	o := journal.Options{Dir: journal.Dir(state, "old-1"), Run: "old-1"}
	w, err := journal.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []event.Payload{event.RunStarted{Agent: "old", Version: "0.1"}, event.ModelRequest{}, event.ModelResponse{}, event.RunFinished{Phase: view.Succeeded}} {
		if _, err := w.Append(event.Event{Message: "m", Data: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), VerifyOptions{Dir: o.Dir})
	if err != nil || !v.OK || v.AuditLog.State != LogNone || len(v.Notes) != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, logName), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(t.Context(), VerifyOptions{Dir: o.Dir}); err != nil || v.OK {
		t.Errorf("with a log: %+v, %v", v, err)
	}
}

func TestALogOfALaterVersionIsNotJudged(t *testing.T) {
	o := journal.Options{Dir: journal.Dir(t.TempDir(), "new-1"), Run: "new-1"}
	w, err := journal.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(event.Event{Data: event.RunStarted{Agent: "new", Audit: &event.AuditLog{Version: 9, Key: strings.Repeat("0", 32)}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(t.Context(), VerifyOptions{Dir: o.Dir}); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestWhatAResumeHadToRepairIsNoted(t *testing.T) {
	k := begin(t, t.TempDir(), "worker-1", nil)
	k.add("", "", event.Warning{Message: runs.Damaged + ": the end of the journal of this run is damaged"})
	k.end()
	k.write("audit.changed-1.jsonl", []byte("{}\n"))
	v := k.verify()
	st, err := Statement(t.Context(), k.dir)
	if !v.OK || len(v.Notes) != 2 || err != nil || !st.Predicate.Journal.Damaged {
		t.Errorf("got %+v, %+v, %v", v, st, err)
	}
}

func TestALinkIsNotTheAuditLog(t *testing.T) {
	k := ended(t).copied()
	if err := errors.Join(os.Rename(k.path(logName), k.path("kept")), os.Symlink("kept", k.path(logName))); err != nil {
		t.Fatal(err)
	}
	if v := k.verify(); v.OK || v.Problems[0].File != logName {
		t.Errorf("got %+v", v)
	}
}
