package runapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

const (
	// writePatience is how long a reader may take for one write.
	writePatience = 10 * time.Second
	// pingEvery is the longest silence of a stream.
	pingEvery = 15 * time.Second
	// lookEvery is the interval at which the journal of another process is polled. For a
	// journal of this process the stream is woken.
	lookEvery = 100 * time.Millisecond
	// looksIdle is the factor by which the rest is polled less often: the journals of this
	// process, and the objects.
	looksIdle = 10
	// statusPatience is how long the object of a run may take to show its end.
	statusPatience = 2 * time.Second
	// maxLag is by how many bytes of the journal a reader may fall back while it reads.
	// The distance at which it began does not count: reading old events is not slow.
	maxLag = 64 << 20
	// lagEvery is the number of bytes after which the lag of a reader is checked.
	lagEvery = 1 << 20
)

// stream sends the events of a run to one reader. Events wait for the reader in the
// journal: only the position of the reader is kept in memory.
type stream struct {
	s    *Server
	out  eventWriter
	want wanted

	run  *v1alpha1.Run // as it was read last
	gone bool          // it has been deleted

	// attempt is the attempt that in reads. next is the number of the next event to send.
	attempt int32
	in      *journal.Follower
	// tree reads in together with the runs below; nil where they are not wanted.
	tree *runs.TreeEvents
	line int64 // the number of the line that was read last
	next int64
	// announced: the reader knows the attempt.
	announced bool
	// finished is the end of the attempt, if that is the last event that was read.
	finished *event.RunFinished
	// since is the time at which the stream found that the attempt has ended; see overdue.
	since time.Time
	// waiting is the last record sent about a run that has not begun.
	waiting record

	// sent counts the bytes since the lag was checked, nearest is the smallest lag so far.
	sent, nearest int64
}

// head is the part of an event that a stream decodes.
type head struct {
	Seq  int64      `json:"seq"`
	Type event.Type `json:"type"`
}

// errSlow: the reader fell back too far.
var errSlow = fmt.Errorf("the reader is more than %d MiB behind", maxLag>>20)

// serve sends events until the stream ends.
func (st *stream) serve(ctx context.Context) {
	woken, unsubscribe := st.s.notifier.subscribe(client.ObjectKeyFromObject(st.run))
	defer unsubscribe()
	st.nearest, _ = st.in.Behind() // 0 before there is a journal
	p := &pause{woken: woken, look: time.NewTimer(st.s.o.lookEvery), ping: time.NewTimer(st.s.o.pingEvery)}
	defer p.look.Stop()
	defer p.ping.Stop()
	for {
		said, done, err := st.turn(ctx)
		switch {
		case done:
			return
		case errors.Is(err, errSlow):
			st.drop(err, whyReader)
			return
		case err != nil:
			st.drop(err, whyLater)
			return
		case said:
			p.ping.Reset(st.s.o.pingEvery)
		}
		if !st.rest(ctx, p) {
			return
		}
	}
}

var errStopping = errors.New("the server is stopping")

// drop ends a stream before its end.
func (st *stream) drop(err error, w why) {
	st.out.end(record{Type: recordDropped, Next: st.next, Attempt: st.attempt, Message: err.Error()}, w)
}

// turn sends everything that is there now. When done is true, the stream has ended.
func (st *stream) turn(ctx context.Context) (said, done bool, err error) {
	// The object first: the journal that is read afterwards is at least as new.
	if err := st.look(ctx); err != nil {
		return false, false, err
	}
	for {
		n, err := st.pump()
		said = said || n > 0
		if _, lost := errors.AsType[*writeError](err); lost {
			return said, true, nil // the reader is gone
		}
		if err != nil {
			return said, false, err
		}
		if !st.turnsTo() {
			break
		}
	}
	if end := st.over(); end != nil {
		if !st.s.o.Executes(st.s.o.RunID(st.run, st.attempt)) {
			if damage, ok := journal.DamagedAtEnd(st.in.Ended()); ok {
				end.Damage = damage.Error()
			}
		}
		st.out.end(*end, whyEnd)
		return said, true, nil
	}
	more, err := st.wait()
	return said || more, err != nil, nil
}

// look reads the object again. An object that the cache lacks is read from the API server.
func (st *stream) look(ctx context.Context) error {
	if st.gone {
		return nil
	}
	key, run := client.ObjectKeyFromObject(st.run), &v1alpha1.Run{}
	err := st.s.o.Client.Get(ctx, key, run)
	if apierrors.IsNotFound(err) {
		err = st.s.o.Reader.Get(ctx, key, run)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && run.UID != st.run.UID:
		st.gone = true
	case err == nil:
		st.run = run
	case ctx.Err() == nil: // otherwise the end of the context ends the stream
		return fmt.Errorf("read run %s: %w", key, err)
	}
	return nil
}

// writeError: writing to the reader failed.
type writeError struct{ error }

// open begins to read the attempt.
func (st *stream) open() {
	id := st.s.o.RunID(st.run, st.attempt)
	st.in = journal.Follow(journal.Dir(st.s.o.State, id))
	if st.want.children {
		st.tree = runs.NewTreeEvents(st.s.o.State, id, true, st.in)
	}
}

func (st *stream) close() {
	if st.tree != nil {
		st.tree.Close()
	}
	_ = st.in.Close() // nothing was written
}

// read returns the next event, and whether it is one of a run below.
func (st *stream) read() (line []byte, below event.Type, err error) {
	if st.tree == nil {
		line, err = st.in.Next()
		return line, "", err
	}
	e, err := st.tree.Next()
	if err == nil && e.Below {
		below = e.Type()
	}
	return e.Line, below, err
}

// pump sends the new events of the journal, and counts them.
func (st *stream) pump() (n int, err error) {
	for {
		line, below, err := st.read()
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			st.nearest = 0
			if n > 0 {
				err = st.out.flush()
				return n, lost(err)
			}
			return n, nil
		}
		if err != nil {
			return n, err
		}
		sent, err := st.pass(line, below)
		if err != nil {
			return n, err
		}
		if sent {
			n++
			if err := st.lag(len(line)); err != nil {
				return n, err
			}
		}
	}
}

func lost(err error) error {
	if err == nil {
		return nil
	}
	return &writeError{err}
}

// pass sends an event, if the reader wants it. What runs below did before the first event
// that is wanted is left out.
func (st *stream) pass(line []byte, below event.Type) (sent bool, err error) {
	if below == "" {
		st.line++
		return st.event(line)
	}
	if !st.announced {
		return false, nil
	}
	return true, lost(st.out.below(below, line))
}

// event sends an event of the run, if the reader wants it.
func (st *stream) event(line []byte) (sent bool, err error) {
	if st.line < st.next {
		if st.line == st.next-1 { // for an earlier line another one followed, so it was not the end
			st.finished = finishedBy(line)
		}
		return false, nil
	}
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return false, fmt.Errorf("event %d of the journal cannot be read: %w", st.line, err)
	}
	if h.Seq != st.line {
		return false, fmt.Errorf("the journal has event %d where %d is next", h.Seq, st.line)
	}
	if !st.announced {
		if err := st.out.record(record{Type: recordAttempt, Attempt: st.attempt}); err != nil {
			return false, lost(err)
		}
		st.announced = true
	}
	if err := st.out.event(h, line); err != nil {
		return false, lost(err)
	}
	st.next = st.line + 1
	st.finished = nil
	if h.Type == event.TypeRunFinished {
		st.finished = finishedBy(line)
	}
	return true, nil
}

// lag returns an error for a reader that falls back too far.
func (st *stream) lag(n int) error {
	if st.sent += int64(n); st.sent < lagEvery {
		return nil
	}
	st.sent = 0
	behind, err := st.in.Behind()
	if err != nil {
		return err
	}
	st.nearest = min(st.nearest, behind)
	if behind > st.nearest+st.s.o.maxLag {
		return errSlow
	}
	return nil
}

// turnsTo moves to the next attempt, if this one has ended and there is one.
func (st *stream) turnsTo() bool {
	if !st.halted() || st.run.Status.Attempt <= st.attempt {
		return false
	}
	st.close()
	st.attempt++
	st.open()
	st.line, st.next, st.announced, st.finished, st.since, st.waiting = 0, 1, false, nil, time.Time{}, record{}
	st.nearest, _ = st.in.Behind()
	return true
}

// wait reports what a run that has not begun, or not begun again, waits for; once, and
// again when that changes.
func (st *stream) wait() (said bool, err error) {
	if st.line > 0 && (!st.halted() || st.run.Spec.BackoffLimit == 0) {
		return false, nil
	}
	r := st.standing(recordWaiting)
	stale := r.Phase == v1alpha1.PhaseRunning || st.halted() && r.Reason == string(reason.Accepted) // it is about the earlier attempt
	if r == st.waiting || stale {
		return false, nil
	}
	st.waiting = r
	if err := st.out.record(r); err != nil {
		return false, err
	}
	return true, st.out.flush()
}
