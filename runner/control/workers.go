package control

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/telemetry"
)

// WorkerOptions say how runs are executed in this process.
type WorkerOptions struct {
	// State is the folder that holds runs. Required.
	State string
	// Limit is the number of runs that are executed at once; 0 is DefaultLimit.
	Limit int
	// AllowUnsandboxed, Containerd and Version are those of runner.RunOptions.
	AllowUnsandboxed    bool
	Containerd, Version string
	Log                 *slog.Logger
	// Policies returns those that hold for an agent now, among them those of the names
	// that are still there. nil: a run is judged by the policies of its plan alone.
	Policies func(ctx context.Context, namespace, agent string, names []string) ([]*v1alpha1.Policy, error)
	// Room returns why no run is begun at present, or nil. Optional.
	Room func() error
	// Telemetry is that of runner.RunOptions.
	Telemetry *telemetry.Client
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Workers are the Executor of this process. The journal of a run is authoritative: it
// shows whether the run has begun, and its lock whether another process executes it.
type Workers struct {
	o       WorkerOptions
	shared  *runner.Shared
	metrics *metrics

	following sync.Mutex
	changed   []func(namespace, name string)
	// heard is called for each event of a run, changed only for those that change its
	// status.
	heard func(namespace, name string)
	wg    sync.WaitGroup

	mu     sync.Mutex
	items  map[string]*item
	line   queue
	living int
	// resting are those of living that wait for people, longest first; asleep is the
	// number of parked runs, which are not in living, and woken are parked runs that
	// continue.
	resting []*item
	asleep  int
	woken   []*item
	stopped bool
	again   *time.Timer // looks for room again, or nil
	look    *time.Timer // looks into the inboxes of parked runs, or nil
	// keep is how many runs wait for people in memory; 0 is by the limit.
	keep int
}

// NewWorkers returns workers without work. Stop them.
func NewWorkers(o WorkerOptions) *Workers {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	return &Workers{o: o, shared: &runner.Shared{}, metrics: newMetrics(), heard: func(string, string) {}, items: map[string]*item{}}
}

// Follow implements Executor.
func (w *Workers) Follow(changed func(namespace, name string)) {
	w.following.Lock()
	defer w.following.Unlock()
	w.changed = append(w.changed, changed)
}

// notify reports that there may be news about a run.
func (w *Workers) notify(work Work) {
	w.following.Lock()
	all := slices.Clone(w.changed)
	w.following.Unlock()
	for _, changed := range all {
		changed(work.Namespace, work.Name)
	}
}

// Questions implements Asker.
func (w *Workers) Questions(ctx context.Context, id string) ([]runs.Asked, error) {
	return runs.TreeQuestions(ctx, w.o.State, id)
}

// Answer implements Asker. A waiting run polls for the answer; a suspended one is woken
// here.
func (w *Workers) Answer(work Work, q *runs.Asked, a runs.Left) error {
	left, err := runs.Leave(w.o.State, q, a, w.o.Now)
	if left && q.State != runs.Waits {
		w.mu.Lock()
		if i := w.items[work.ID]; i != nil {
			w.wake(i)
			w.dispatch()
		}
		w.mu.Unlock()
		w.notify(work)
	}
	return err
}

// Start implements Executor.
func (w *Workers) Start(work Work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.items[work.ID]; known || w.stopped {
		return
	}
	i := &item{work: work, progress: Queued, leave: make(chan struct{}), drain: make(chan struct{})}
	i.ctx, i.cancel = context.WithCancelCause(context.Background())
	w.items[work.ID] = i
	w.line.push(i)
	w.dispatch()
}

// free reports whether one more run can be executed.
func (w *Workers) free() bool {
	return w.living-min(len(w.resting), w.mostInMemory()) < w.o.Limit
}

// dispatch gives waiting runs to free workers. The mutex is held.
func (w *Workers) dispatch() {
	for w.free() && !w.stopped {
		if (w.line.n > 0 || len(w.woken) > 0) && w.o.Room() != nil {
			w.lookAgain()
			return
		}
		i := w.next()
		if i == nil {
			return
		}
		if i.gone {
			continue
		}
		w.living++
		i.taken = true
		w.wg.Go(func() {
			w.execute(i)
			w.mu.Lock()
			w.living--
			w.restLocked(i, restNone)
			if i.waits() && !w.stopped {
				w.parked(i)
			} else {
				i.cancel(nil)
			}
			w.dispatch()
			w.mu.Unlock()
			w.notify(i.work)
		})
	}
}

// next returns the next run that is to be executed, nil if there is none. The caller holds
// the mutex.
func (w *Workers) next() *item {
	if len(w.woken) == 0 {
		return w.line.pop()
	}
	i := w.woken[0]
	w.woken = w.woken[1:]
	return i
}

// lookAgain dispatches again when there may be room. The mutex is held.
func (w *Workers) lookAgain() {
	if w.again != nil {
		return
	}
	w.again = time.AfterFunc(roomAgain, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.again = nil
		w.dispatch()
	})
}

func (w *Workers) forget(i *item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.items, i.work.ID)
}

// Cancel implements Executor.
func (w *Workers) Cancel(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.items[id]; i != nil {
		i.cancel(reason.New(reason.Cancelled, "its object was cancelled or deleted"))
		w.wake(i) // a worker records that it was cancelled
		w.dispatch()
	}
}

// executes reports whether a run is executed here.
func (w *Workers) executes(id string) bool {
	w.mu.Lock()
	i := w.items[id]
	w.mu.Unlock()
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.progress == Living
}

// Suspend implements Executor. A run that a worker executes is asked to leave.
func (w *Workers) Suspend(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch i := w.items[id]; {
	case i == nil:
	case i.taken:
		i.letGo()
	case i.parked:
		w.unpark(i)
		w.leftAsItStands(i)
	case slices.Contains(w.woken, i):
		w.woken = slices.DeleteFunc(w.woken, func(other *item) bool { return other == i })
		w.leftAsItStands(i)
	default:
		i.gone = true
		delete(w.items, id)
	}
}

// leftAsItStands has a run that no worker has observed as left. The mutex is held.
func (w *Workers) leftAsItStands(i *item) {
	i.cancel(nil)
	i.mu.Lock()
	i.progress = Left
	i.mu.Unlock()
}

// Observe implements Executor.
func (w *Workers) Observe(id string) Observation {
	w.mu.Lock()
	i := w.items[id]
	w.mu.Unlock()
	if i == nil {
		return Observation{Progress: w.traces(id)}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	o := Observation{Progress: i.progress, Err: i.err}
	if i.view == nil && i.status != nil {
		o.Status = *i.status.DeepCopy()
	}
	if i.view != nil && i.view.ID != "" {
		o.Status = project(i.view, journal.Dir(w.o.State, id), i.head)
		if i.view.Finished == nil {
			o.Status.PendingApprovals += i.below.pending()
		}
		if f := i.view.Finished; f != nil {
			o.Reason, o.Message = f.Reason, f.Message
			switch {
			case f.Phase == string(v1alpha1.PhaseSuspended) && f.Reason == string(reason.ApprovalRequired): // nobody needs to resume it
				o.Message += " (agentctl approve or agentctl deny answers; then it continues)"
			case f.Hint != "":
				o.Message += " (" + f.Hint + ")"
			}
		}
	}
	return o
}

// traces is the progress of a run that the workers do not have, from its journal.
func (w *Workers) traces(id string) Progress {
	_, err := journal.Last(journal.Dir(w.o.State, id))
	if damage, end := journal.DamagedAtEnd(err); end && damage.Kept > 0 {
		return Left
	}
	if err != nil {
		return Unknown
	}
	if answered, err := runs.Resumable(context.Background(), w.o.State, id); err == nil && !answered {
		return Waiting
	}
	return Left
}

// Release implements Executor.
func (w *Workers) Release(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.items[id]
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.progress == Ended || i.progress == Left {
		delete(w.items, id)
	}
}

// Busy reports whether a run is executed, waits for a worker or is parked.
func (w *Workers) Busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living > 0 || w.line.n > 0 || len(w.woken) > 0 || w.asleep > 0
}

// stop begins nothing further. The mutex is held.
func (w *Workers) stop() {
	w.stopped = true
	for _, t := range []*time.Timer{w.again, w.look} {
		if t != nil {
			t.Stop()
		}
	}
	for _, i := range w.items {
		if i.alarm != nil {
			i.alarm.Stop()
		}
	}
}

// Drain begins no further run, and has each executed run left at a moment when none of its
// calls is in progress. It waits until they are left, or for the given time.
func (w *Workers) Drain(patience time.Duration) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.stop()
	for _, i := range w.items {
		i.drainNow()
	}
	w.mu.Unlock()
	w.await(patience)
}

// await waits until no run is executed, and reports whether that came in time.
func (w *Workers) await(patience time.Duration) bool {
	done := make(chan struct{})
	go func() { w.wg.Wait(); close(done) }()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Stop leaves every run as it is and waits until none is executed.
func (w *Workers) Stop(patience time.Duration) error {
	w.mu.Lock()
	w.stop()
	for _, i := range w.items {
		i.letGo()
	}
	w.mu.Unlock()
	if !w.await(patience) {
		return errors.New("runs do not end: they are given up")
	}
	return nil
}
