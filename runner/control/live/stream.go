package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
)

const (
	// writePatience is how long a reader may take for one write.
	writePatience = 10 * time.Second
	// pingEvery is how long a stream says nothing at most.
	pingEvery = 15 * time.Second
	// lookEvery is how often a journal is looked at that somebody else may write.
	// What this process writes, it is woken for.
	lookEvery = 100 * time.Millisecond
	// looksIdle is how much less often it is looked at what nobody says has grown:
	// what this process lives, and the rest of what a stream is made of.
	looksIdle = 10
	// statusPatience is how long the object of a run may take to tell of its end.
	statusPatience = 2 * time.Second
	// maxLag is by how much a reader may fall back, in bytes of the journal. How
	// far back it began does not count: to read what is old is not to be slow.
	maxLag = 64 << 20
	// lagEvery is after how many bytes its place is looked at.
	lagEvery = 1 << 20
)

// stream tells one reader the events of a run. The journal is where they wait for
// it: all that is kept of a reader is its place.
type stream struct {
	s    *Server
	out  teller
	want wanted

	run  *v1alpha1.Run // as it was seen last
	gone bool          // it was deleted since

	// attempt is the one that in reads, and next the number of the event that its
	// next line holds, or of the first that is wanted.
	attempt int32
	in      *journal.Follower
	line    int64 // that was read last
	next    int64
	// told is that the reader knows the attempt.
	told bool
	// finished is the end of the attempt, while it is the last that was read.
	finished *event.RunFinished
	// since is when it was found that the attempt has ended; see overdue.
	since time.Time
	// waiting is what was said last about a run that has not begun.
	waiting record

	// sent are the bytes since the lag was looked at, nearest the smallest lag.
	sent, nearest int64
}

// head is what a stream has to know of an event.
type head struct {
	Seq  int64      `json:"seq"`
	Type event.Type `json:"type"`
}

// errSlow says that a reader fell back too far.
var errSlow = fmt.Errorf("the reader is more than %d MiB behind", maxLag>>20)

// tell tells everything until the stream ends, in whichever way.
func (st *stream) tell(ctx context.Context) {
	rung, takeDown := st.s.bells.hang(client.ObjectKeyFromObject(st.run))
	defer takeDown()
	st.nearest, _ = st.in.Behind() // 0 before there is a journal
	p := &pause{rung: rung, look: time.NewTimer(st.s.o.lookEvery), ping: time.NewTimer(st.s.o.pingEvery)}
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

// pause is what a stream waits by.
type pause struct {
	rung <-chan struct{}
	look *time.Timer
	// looks counts how often there was nothing.
	looks int
	ping  *time.Timer
}

// rest waits until there may be something new; false says that the stream has
// ended meanwhile.
func (st *stream) rest(ctx context.Context, p *pause) bool {
	for {
		select {
		case <-p.rung:
			return true
		case <-p.look.C:
			if st.s.o.Lives(st.s.o.RunID(st.run, st.attempt)) {
				p.look.Reset(looksIdle * st.s.o.lookEvery)
				return true
			}
			p.look.Reset(st.s.o.lookEvery)
			if p.looks++; p.looks%looksIdle == 0 || st.in.Grown() {
				return true
			}
		case <-p.ping.C:
			p.ping.Reset(st.s.o.pingEvery)
			if st.out.ping() != nil {
				return false // the reader is gone
			}
		case <-st.s.stopping:
			if _, done, err := st.turn(ctx); !done { // what came before
				st.drop(errors.Join(errStopping, err), whyLater)
			}
			return false
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				st.drop(cause, whyReader)
			}
			return false
		}
	}
}

var errStopping = errors.New("the server is stopping")

// drop ends a stream that is not at its end.
func (st *stream) drop(err error, w why) {
	st.out.end(record{Type: recordDropped, Next: st.next, Attempt: st.attempt, Message: err.Error()}, w)
}

// turn tells what there is to tell now. When it is done there will be nothing
// more, and the stream has ended.
func (st *stream) turn(ctx context.Context) (said, done bool, err error) {
	// The object first: what is then read of the journal is not older.
	if err := st.look(ctx); err != nil {
		return false, false, err
	}
	for {
		n, err := st.pump()
		said = said || n > 0
		if _, lost := errors.AsType[*writeError](err); lost {
			return said, true, nil // there is nobody to tell it to
		}
		if err != nil {
			return said, false, err
		}
		if !st.turnsTo() {
			break
		}
	}
	if end := st.over(); end != nil {
		st.out.end(*end, whyEnd)
		return said, true, nil
	}
	more, err := st.wait()
	return said || more, err != nil, nil
}

// look reads the object anew. That a cache does not know it says nothing.
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
	case ctx.Err() == nil: // else that is what ends the stream
		return fmt.Errorf("read run %s: %w", key, err)
	}
	return nil
}

// writeError says that the reader could not be reached.
type writeError struct{ error }

// pump tells what the journal has, and counts it.
func (st *stream) pump() (n int, err error) {
	for {
		line, err := st.in.Next()
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
		st.line++
		told, err := st.event(line)
		if err != nil {
			return n, err
		}
		if told {
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

// event tells an event, if it is wanted.
func (st *stream) event(line []byte) (told bool, err error) {
	if st.line < st.next {
		if st.line == st.next-1 { // all others were followed by this one
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
	if !st.told {
		if err := st.out.record(record{Type: recordAttempt, Attempt: st.attempt}); err != nil {
			return false, lost(err)
		}
		st.told = true
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

// finishedBy reads the end of a run; nil for any other event.
func finishedBy(line []byte) *event.RunFinished {
	var e event.Event
	if e.UnmarshalJSON(line) != nil {
		return nil
	}
	if f, ok := e.Data.(event.RunFinished); ok {
		return &f
	}
	return nil
}

// lag gives up on a reader that falls back.
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

// turnsTo goes on to the next attempt, if this one has ended and there is one.
func (st *stream) turnsTo() bool {
	if !st.halted() || st.run.Status.Attempt <= st.attempt {
		return false
	}
	_ = st.in.Close() // nothing was written
	st.attempt++
	st.in = journal.Follow(journal.Dir(st.s.o.State, st.s.o.RunID(st.run, st.attempt)))
	st.line, st.next, st.told, st.finished, st.since, st.waiting = 0, 1, false, nil, time.Time{}, record{}
	st.nearest, _ = st.in.Behind()
	return true
}

// halted says whether the attempt has ended for good.
func (st *stream) halted() bool {
	return st.finished != nil && v1alpha1.Phase(st.finished.Phase) != v1alpha1.PhaseSuspended
}

// over is the end of the stream, if it is at its end.
func (st *stream) over() *record {
	switch {
	case st.halted() && (st.gone || ended(st.run) || st.overdue()):
		return st.ends(st.finished)
	case ended(st.run):
		return st.object()
	case st.gone:
		end := st.object()
		end.Phase, end.Reason, end.Message = v1alpha1.PhaseCancelled, string(reason.Cancelled), "the run was deleted"
		end.ExitCode = new(reason.Cancelled.ExitCode())
		return end
	case !st.want.follow && st.finished != nil && (!st.halted() || st.run.Spec.BackoffLimit == 0):
		return st.ends(st.finished)
	case !st.want.follow:
		return st.object()
	}
	return nil
}

// overdue says whether an attempt has ended for so long that its object ought to
// say so. Who reads the end of a stream and then the object must not be told two
// things; but what the journal says is so. A run that failed may be tried again.
func (st *stream) overdue() bool {
	now := st.s.o.Now()
	if st.since.IsZero() {
		st.since = now
	}
	again := st.run.Spec.BackoffLimit > 0 && v1alpha1.Phase(st.finished.Phase) == v1alpha1.PhaseFailed
	return !again && now.Sub(st.since) >= st.s.o.statusPatience
}

// ends is an end as the journal tells it.
func (st *stream) ends(f *event.RunFinished) *record {
	return &record{
		Type: recordEnd, Next: st.next, Attempt: st.attempt, Phase: v1alpha1.Phase(f.Phase), Reason: f.Reason, Message: f.Message, ExitCode: &f.ExitCode,
	}
}

// object is an end as the object tells it.
func (st *stream) object() *record {
	r := st.standing(recordEnd)
	r.Next = st.next
	if ended(st.run) {
		r.ExitCode = new(reason.Reason(r.Reason).ExitCode())
	}
	return &r
}

// standing is how the object says that the run stands.
func (st *stream) standing(t event.Type) record {
	r := record{Type: t, Phase: st.run.Status.Phase}
	if r.Phase == "" {
		r.Phase = v1alpha1.PhasePending
	}
	if c := meta.FindStatusCondition(st.run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		r.Reason, r.Message = c.Reason, c.Message
	}
	return r
}

// wait says what a run waits for that has not begun, or not yet again; once, and
// again when that changes.
func (st *stream) wait() (said bool, err error) {
	if st.line > 0 && (!st.halted() || st.run.Spec.BackoffLimit == 0) {
		return false, nil
	}
	r := st.standing(recordWaiting)
	stale := r.Phase == v1alpha1.PhaseRunning || st.halted() && r.Reason == string(reason.Accepted) // it speaks of what was before
	if r == st.waiting || stale {
		return false, nil
	}
	st.waiting = r
	if err := st.out.record(r); err != nil {
		return false, err
	}
	return true, st.out.flush()
}
