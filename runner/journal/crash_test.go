package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

var errDied = errors.New("died")

// mortal makes the process die at its nth write or sync: nothing after it
// happens, and of a write only the given share.
type mortal struct {
	mu    sync.Mutex
	left  int
	share float64
}

func (m *mortal) step() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	return m.left < 0
}

func (m *mortal) write(f *os.File, b []byte) (int, error) {
	if !m.step() {
		return f.Write(b)
	}
	n := 0
	if m.left == -1 {
		n, _ = f.Write(b[:int(m.share*float64(len(b)))])
	}
	return n, errDied
}

func (m *mortal) sync(*os.File) error {
	if !m.step() {
		return nil
	}
	return errDied
}

// volatile is a sync that costs nothing, for tests in which only processes die.
func volatile(*os.File) error { return nil }

// life is a run that appends, syncs and stores; it returns the last event that was
// acknowledged, and the last that was acknowledged as durable.
func life(o Options) (told, durable int64) {
	w, err := Create(context.Background(), o)
	if err != nil {
		return 0, 0
	}
	defer w.Close() //nolint:errcheck // the process may have died
	for i := range 6 {
		e, err := w.Append(event.Event{Data: event.TextEnd{Text: fmt.Sprint("text ", i)}})
		if err != nil {
			return told, durable
		}
		told = e.Seq
		if _, err := w.PutBlob([]byte(fmt.Sprint("blob ", i))); err != nil {
			return told, durable
		}
		if i%2 == 1 {
			if w.Sync() != nil {
				return told, durable
			}
			durable = told
		}
	}
	return told, durable
}

func TestAKillAtAnyWriteOrSyncLosesNothingThatWasTold(t *testing.T) {
	kills := 0
	for _, share := range []float64{0, 0.5, 1} {
		for n := 0; ; n++ {
			o := options(t)
			m := &mortal{left: n, share: share}
			o.Write, o.Sync = m.write, m.sync
			told, durable := life(o)
			if m.left >= 0 {
				break
			}
			kills++
			o.Write, o.Sync = nil, volatile
			w, err := Open(context.Background(), o)
			if told == 0 && errors.Is(err, ErrEmpty) {
				continue
			}
			if err != nil {
				t.Fatalf("killed at step %d: %v", n, err)
			}
			seq, _ := w.Head()
			// The line at which it died may be complete, although it was not acknowledged.
			if seq < told || seq > told+1 || durable > seq {
				t.Fatalf("killed at step %d: %d events are there, %d were sent, %d durable", n, seq, told, durable)
			}
			for i := range told - 1 {
				if _, err := w.GetBlob(hashLine([]byte(fmt.Sprint("blob ", i)))); err != nil {
					t.Fatalf("killed at step %d: %v", n, err)
				}
			}
			appendText(t, w, "goes on")
			closeWriter(t, w)
			if r, err := Verify(context.Background(), o.Dir); err != nil || r.Events != seq+1 || !r.Anchored {
				t.Fatalf("killed at step %d: %+v, %v", n, r, err)
			}
			if left, _ := filepath.Glob(filepath.Join(o.Dir, blobFolder, blobTemp+"*")); len(left) > 0 {
				t.Fatalf("killed at step %d: %v stays behind", n, left)
			}
		}
	}
	if kills < 45 {
		t.Errorf("only %d kills", kills)
	}
}

func TestAFullDiskIsAnErrorAndNoDamage(t *testing.T) {
	o := options(t)
	room := 700
	o.Write = func(f *os.File, b []byte) (int, error) {
		n, err := f.Write(b[:min(room, len(b))])
		if room -= n; n < len(b) {
			err = syscall.ENOSPC
		}
		return n, err
	}
	w := create(t, o)
	var told int64
	var err error
	for err == nil {
		var e event.Event
		if e, err = w.Append(event.Event{Data: event.TextEnd{Text: "some text"}}); err == nil {
			told = e.Seq
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || w.Close() == nil {
		t.Errorf("the disk is full: %v", err)
	}
	o.Write = nil
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if seq, _ := again.Head(); seq != told {
		t.Errorf("%d events, want the %d that were sent", seq, told)
	}
	closeWriter(t, again)
}

func TestAWriteThatIsCutShortSilentlyIsAnError(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "whole")
	w.opts.Write = func(f *os.File, b []byte) (int, error) { return f.Write(b[:len(b)/2]) }
	if _, err := w.Append(event.Event{Data: event.TextStart{}}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

func TestASuspendedRunIsVouchedForBeforeDuringAndAfterAResume(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "one", "two")
	closeWriter(t, w)
	verify := func(when string, events int64, anchored bool) {
		t.Helper()
		r, err := Verify(context.Background(), o.Dir)
		if err != nil || r.Events != events || r.Anchored != anchored {
			t.Errorf("%s: %+v, %v", when, r, err)
		}
	}
	verify("suspended", 2, true)
	w, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	verify("opened", 2, true)
	appendText(t, w, "three")
	verify("going on", 3, false)
	path := filepath.Join(o.Dir, w.file.Name()[strings.LastIndexByte(w.file.Name(), '/')+1:])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Until then the old head still vouches for the earlier events.
	rewrite(t, path, []byte(strings.Replace(string(whole), "two", "2wo", 1)))
	if _, err := Verify(context.Background(), o.Dir); !isCorrupt(err) {
		t.Errorf("a change before the resume was not found: %v", err)
	}
	rewrite(t, path, whole)
	closeWriter(t, w)
	verify("finished", 3, true)
}

func TestOpenWaitsForAProcessThatIsJustDying(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	dead := make(chan error, 1)
	opened := make(chan struct{})
	go func() {
		<-opened
		dead <- w.Close()
	}()
	close(opened)
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-dead; err != nil {
		t.Fatal(err)
	}
	closeWriter(t, again)
}

func TestWhatAnEarlierProcessStoredIsMadeDurableByTheNext(t *testing.T) {
	o := options(t)
	w := create(t, o)
	appendText(t, w, "x")
	id, err := w.PutBlob([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	w.opts.Sync = func(*os.File) error { return errDied }
	_ = w.Close()
	var mu sync.Mutex
	synced := map[string]bool{}
	o.Sync = func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		synced[filepath.Base(f.Name())] = true
		return f.Sync()
	}
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Sync(); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"events-20260504.jsonl": true, blobFolder: true, "r-1": true, "runs": true, id[len(hashPrefix):]: true}
	if diff := cmp.Diff(want, synced); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	closeWriter(t, again)
}
