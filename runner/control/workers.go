package control

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// WorkerOptions say how runs are lived in this process.
type WorkerOptions struct {
	// State is the folder that holds runs. Required.
	State string
	// Limit is how many are lived at once; 0 is DefaultLimit.
	Limit int
	// AllowUnsandboxed, Containerd and Version are those of runner.RunOptions.
	AllowUnsandboxed    bool
	Containerd, Version string
	Log                 *slog.Logger
	// Now stands for the clock. Default: time.Now.
	Now func() time.Time
}

// heldAgain is when a run is tried again that another process drives.
const heldAgain = 2 * time.Second

// Workers are the Executor of this process. A run's journal is the fact: it
// says whether the run has begun, and its lock that nobody else lives it.
type Workers struct {
	o      WorkerOptions
	shared *runner.Shared

	following sync.Mutex
	changed   []func(namespace, name string)
	// heard is called for each event of a run, changed only for those that a
	// status shows.
	heard func(namespace, name string)
	wg    sync.WaitGroup

	mu      sync.Mutex
	items   map[string]*item
	line    queue
	living  int
	resting int // of those that are lived
	stopped bool
}

// item is a run that the workers have.
type item struct {
	work Work
	// taken says that a worker has it, gone that nobody wants it any more, and
	// resting that it waits for a person. The mutex of the workers guards them.
	taken, gone, resting bool
	leave                chan struct{} // closed when it is to be left
	cancel               context.CancelCauseFunc
	ctx                  context.Context //nolint:containedctx // it is the life of the run, from Start to its end

	mu       sync.Mutex
	progress Progress
	view     *view.Run
	head     string // hash of the last event, once the run has ended
	err      error
}

// NewWorkers returns workers without work. Stop them.
func NewWorkers(o WorkerOptions) *Workers {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock
	}
	return &Workers{o: o, shared: &runner.Shared{}, heard: func(string, string) {}, items: map[string]*item{}}
}

// Follow implements Executor.
func (w *Workers) Follow(changed func(namespace, name string)) {
	w.following.Lock()
	defer w.following.Unlock()
	w.changed = append(w.changed, changed)
}

// tell says that there is something new about a run.
func (w *Workers) tell(work Work) {
	w.following.Lock()
	all := slices.Clone(w.changed)
	w.following.Unlock()
	for _, changed := range all {
		changed(work.Namespace, work.Name)
	}
}

// Questions implements Asker.
func (w *Workers) Questions(ctx context.Context, id string) ([]runs.Asked, error) {
	return runs.Questions(ctx, w.o.State, id)
}

// Answer implements Asker. A run that waits looks for it; of one that was
// suspended is told that it can go on.
func (w *Workers) Answer(work Work, q *runs.Asked, a runs.Left) error {
	left, err := runs.Leave(w.o.State, q, a, w.o.Now)
	if left && q.State != runs.Waits {
		w.tell(work)
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
	i := &item{work: work, progress: Queued, leave: make(chan struct{})}
	i.ctx, i.cancel = context.WithCancelCause(context.Background())
	w.items[work.ID] = i
	w.line.push(i)
	w.dispatch()
}

// restingFactor bounds how many runs may wait for a person beside those that go
// on, as a multiple of the limit: each still holds memory and descriptors.
const restingFactor = 4

// rest says whether a run waits for a person. It does nothing then, and another
// one gets its place: with the limit of runs that wait for hours, nothing would go
// on any more. Once it is answered it goes on at once, if need be beside as many
// as the limit allows: who has answered is not kept waiting.
func (w *Workers) rest(i *item, rests bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i.resting == rests {
		return
	}
	if i.resting = rests; rests {
		w.resting++
	} else {
		w.resting--
	}
	w.dispatch()
}

// free says whether one more run can be lived.
func (w *Workers) free() bool {
	return w.living-min(w.resting, restingFactor*w.o.Limit) < w.o.Limit
}

// dispatch gives waiting runs to free workers. The mutex is held.
func (w *Workers) dispatch() {
	for w.free() && !w.stopped {
		i := w.line.pop()
		if i == nil {
			return
		}
		if i.gone {
			continue
		}
		w.living++
		i.taken = true
		w.wg.Go(func() {
			w.live(i)
			w.rest(i, false)
			w.mu.Lock()
			w.living--
			w.dispatch()
			w.mu.Unlock()
			w.tell(i.work)
		})
	}
}

// live lives one run until it has ended or is left.
func (w *Workers) live(i *item) {
	defer i.cancel(nil)
	if i.left() {
		w.forget(i)
		return
	}
	out, err := w.begin(i)
	if _, held := errors.AsType[*journal.HeldError](err); held {
		w.drop(i)
		return
	}
	head := ""
	if err == nil {
		if report, err := journal.Verify(context.Background(), out.Journal); err == nil {
			head = report.Head
		} else {
			w.o.Log.Warn("the journal of a run cannot be verified", "run", i.work.ID, "error", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress, i.err, i.head = Ended, err, head
	if err == nil {
		i.view = out.Run
		if out.Run.Finished == nil {
			i.progress = Left
		}
	}
}

// drop forgets a run that another process drives, and has it looked at again.
func (w *Workers) drop(i *item) {
	t := time.NewTimer(heldAgain)
	defer t.Stop()
	select {
	case <-t.C:
	case <-i.leave:
	case <-i.ctx.Done():
	}
	w.forget(i)
}

func (w *Workers) forget(i *item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.items, i.work.ID)
}

// left says whether a run is to be left.
func (i *item) left() bool {
	select {
	case <-i.leave:
		return true
	default:
		return false
	}
}

// begin starts a run, or goes on with it where its journal says that it began.
func (w *Workers) begin(i *item) (*runner.Outcome, error) {
	fold := &view.Run{}
	i.show(fold)
	if !w.begun(i.work.ID) {
		if i.ctx.Err() != nil {
			return nil, reason.New(reason.Cancelled, "cancelled before it began")
		}
		return runner.Run(i.ctx, runner.RunOptions{
			ID: i.work.ID, Documents: i.work.Documents, Pins: i.work.Pins, State: w.o.State, Approve: "never", Shared: w.shared,
			AllowUnsandboxed: w.o.AllowUnsandboxed, Containerd: w.o.Containerd, Version: w.o.Version,
			Events: w.watch(i, fold), Leave: i.leave,
		})
	}
	before, err := runs.View(i.ctx, w.o.State, i.work.ID)
	if err == nil {
		fold = before
		i.show(fold)
	}
	ctx, begun, done := i.takenUpFirst()
	defer done()
	watch := w.watch(i, fold)
	return runner.Resume(ctx, runner.ResumeOptions{
		Ref: i.work.ID, State: w.o.State, Approve: "never", Containerd: w.o.Containerd, Version: w.o.Version,
		Events: func(e event.Event) { begun(); watch(e) }, Leave: i.leave,
	})
}

// takenUpFirst is the life of a run that goes on. It ends when the run is
// cancelled, but not before begun has been called: until then there is nobody who
// would write down that it was.
func (i *item) takenUpFirst() (_ context.Context, begun, done func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(i.ctx))
	up, ended := make(chan struct{}), make(chan struct{})
	begun = sync.OnceFunc(func() { close(up) })
	stop := context.AfterFunc(i.ctx, func() {
		defer close(ended)
		<-up
		cancel(context.Cause(i.ctx))
	})
	return ctx, begun, func() {
		begun()
		if !stop() {
			<-ended
		}
		cancel(nil)
	}
}

// show makes a fold of the run what is observed.
func (i *item) show(v *view.Run) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress, i.view = Living, v
}

// watch folds the events of a run, and tells of those that a status shows.
func (w *Workers) watch(i *item, v *view.Run) func(event.Event) {
	return func(e event.Event) {
		i.mu.Lock()
		if err := v.Apply(e); err != nil {
			w.o.Log.Warn("an event of a run does not fit", "run", i.work.ID, "error", err)
		}
		waits := waitsForPerson(v)
		i.mu.Unlock()
		w.rest(i, waits)
		w.heard(i.work.Namespace, i.work.Name)
		switch e.Data.(type) {
		case event.RunStarted, event.RunResumed, event.StepFinish, event.ApprovalRequested, event.ApprovalDecided:
			w.tell(i.work)
		}
	}
}

// waitsForPerson says whether a run asks and does nothing until there is an
// answer, or its time is over. Other questions are answered by what is declared.
func waitsForPerson(v *view.Run) bool {
	return slices.ContainsFunc(v.PendingApprovals, func(call string) bool {
		q := v.Question(call)
		return q != nil && q.ExpiresAt > 0
	})
}

// begun says whether a run has a journal with an event in it. What a process
// that was killed left of a run that had none is cleared away, once nobody holds it.
func (w *Workers) begun(id string) bool {
	dir := journal.Dir(w.o.State, id)
	if _, err := journal.Last(dir); err == nil {
		return true
	}
	if _, err := os.Stat(dir); err != nil || journal.Held(dir) {
		return false
	}
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.Events > 0 {
		return err == nil
	}
	if err := os.RemoveAll(dir); err != nil {
		w.o.Log.Warn("what is left of a run cannot be removed", "run", id, "error", err)
	}
	return false
}

// Cancel implements Executor.
func (w *Workers) Cancel(id string) {
	w.mu.Lock()
	i := w.items[id]
	w.mu.Unlock()
	if i != nil {
		i.cancel(reason.New(reason.Cancelled, "its object was cancelled or deleted"))
	}
}

// lives says whether a run is lived here.
func (w *Workers) lives(id string) bool {
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

// Suspend implements Executor. One that a worker has is told when it is left.
func (w *Workers) Suspend(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch i := w.items[id]; {
	case i == nil:
	case i.taken:
		i.letGo()
	default:
		i.gone = true
		delete(w.items, id)
	}
}

// letGo has a run left. The mutex of the workers is held.
func (i *item) letGo() {
	if !i.left() {
		close(i.leave)
	}
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
	if i.view != nil && i.view.ID != "" {
		o.Status = project(i.view, journal.Dir(w.o.State, id), i.head)
		if f := i.view.Finished; f != nil {
			o.Reason, o.Message = f.Reason, f.Message
			switch {
			case f.Phase == string(v1alpha1.PhaseSuspended) && f.Reason == string(reason.ApprovalRequired): // nobody has to resume it
				o.Message += " (agentctl approve or agentctl deny answers; then it goes on)"
			case f.Hint != "":
				o.Message += " (" + f.Hint + ")"
			}
		}
	}
	return o
}

// traces is what the journal says of a run that the workers do not have.
func (w *Workers) traces(id string) Progress {
	if _, err := journal.Last(journal.Dir(w.o.State, id)); err != nil {
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

// Busy says whether a run is lived, or waits to be.
func (w *Workers) Busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living > 0 || w.line.n > 0
}

// Stop leaves every run as it stands and waits until nobody lives one.
func (w *Workers) Stop(patience time.Duration) error {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		for _, i := range w.items {
			i.letGo()
		}
	}
	w.mu.Unlock()
	done := make(chan struct{})
	go func() { w.wg.Wait(); close(done) }()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return errors.New("runs do not end: they are given up")
	}
}
