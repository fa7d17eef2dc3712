package control

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// item is a run that the workers have.
type item struct {
	work Work
	// taken: a worker has the item; gone: the item is no longer wanted; parked: it waits
	// for a person without a worker; resting is the question it waits for. The mutex of
	// the workers guards them.
	taken, gone, parked bool
	resting             restKind
	alarm               *time.Timer   // ends the wait of a parked run, or nil
	leave               chan struct{} // closed when it is to be left
	drain               chan struct{} // closed when it is to be left between its calls
	cancel              context.CancelCauseFunc
	ctx                 context.Context //nolint:containedctx // it is the life of the run, from Start to its end

	mu       sync.Mutex
	progress Progress
	view     *view.Run
	status   *v1alpha1.RunStatus // of a parked run, which has no view
	below    below               // the runs below
	head     string              // hash of the last event, once the run has ended
	err      error
}

// execute executes one run until it has ended or is left.
func (w *Workers) execute(i *item) {
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

// begin starts a run, or continues it if its journal has events.
func (w *Workers) begin(i *item) (*runner.Outcome, error) {
	fold := &view.Run{}
	if i.status == nil {
		i.show(fold)
	}
	if !w.begun(i.work.ID) {
		if i.ctx.Err() != nil {
			return nil, reason.New(reason.Cancelled, "cancelled before it began")
		}
		var left time.Duration
		if !i.work.Deadline.IsZero() {
			left = max(time.Until(i.work.Deadline), time.Nanosecond)
		}
		return runner.Run(i.ctx, runner.RunOptions{
			Timeout: left, User: i.work.User,
			ID: i.work.ID, Documents: i.work.Documents, Pins: i.work.Pins, State: w.o.State, Approve: "never", Shared: w.shared,
			AllowUnsandboxed: w.o.AllowUnsandboxed, Containerd: w.o.Containerd, Version: w.o.Version,
			Events: w.watch(i, fold), Children: w.watchBelow(i), Leave: i.leave, Drain: i.drain, Present: w.present(i),
			Telemetry: w.o.Telemetry,
		})
	}
	ctx, begun, done := i.resumeContext()
	defer done()
	if before, err := runs.View(ctx, w.o.State, i.work.ID); err == nil {
		fold = before
		i.show(fold)
	}
	watch := w.watch(i, fold)
	return runner.Resume(ctx, runner.ResumeOptions{
		Ref: i.work.ID, State: w.o.State, Approve: "never", Containerd: w.o.Containerd, Version: w.o.Version,
		Events: func(e event.Event) { begun(); watch(e) }, Children: w.watchBelow(i), Leave: i.leave, Drain: i.drain, Parked: i.status != nil, Present: w.present(i),
		Telemetry: w.o.Telemetry,
	})
}

// present returns the policies that apply to a call which has waited and continues now.
func (w *Workers) present(i *item) runner.PresentPolicies {
	if w.o.Policies == nil {
		return nil
	}
	return func(ctx context.Context, agent string, planned []string) ([]*v1alpha1.Policy, error) {
		return w.o.Policies(ctx, i.work.Namespace, agent, planned)
	}
}

// begun reports whether a run has a journal with an event in it. Files that a killed
// process left of a run without events are removed, once no process holds the lock.
func (w *Workers) begun(id string) bool {
	dir := journal.Dir(w.o.State, id)
	_, err := journal.Last(dir)
	if damage, end := journal.DamagedAtEnd(err); err == nil || end && damage.Kept > 0 {
		return true // a run whose journal was cut continues from what is left, with a warning
	}
	if _, err := os.Stat(dir); err != nil || journal.Held(dir) {
		return false
	}
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.Events > 0 {
		return err == nil
	}
	if err := fstree.Remove(dir); err != nil {
		w.o.Log.Warn("what is left of a run cannot be removed", "run", id, "error", err)
	}
	return false
}

// watch folds the events of a run, and notifies of those that change its status.
func (w *Workers) watch(i *item, v *view.Run) func(event.Event) {
	return func(e event.Event) {
		w.metrics.event(e)
		i.mu.Lock()
		if err := v.Apply(e); err != nil {
			w.o.Log.Warn("an event of a run does not fit", "run", i.work.ID, "error", err)
		}
		rests := i.restsWith(v)
		asked := e.Call != "" && (v.Question(e.Call) != nil || v.Inquiries(e.Call) > 0)
		i.mu.Unlock()
		w.rest(i, rests)
		w.heard(i.work.Namespace, i.work.Name)
		switch e.Data.(type) {
		case event.RunStarted, event.RunResumed, event.StepFinish, event.ApprovalRequested, event.ApprovalDecided, event.QuestionAsked, event.QuestionAnswered:
			w.notify(i.work)
		case event.ToolCall, event.ToolResult, event.ToolError:
			if asked { // what became of an approval is known
				w.notify(i.work)
			}
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

// show makes a fold of the run what is observed.
func (i *item) show(v *view.Run) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress, i.view = Living, v
}

// resumeContext returns the context of a run that continues. It is cancelled with the run,
// but not before begun has been called: until then nothing could record the cancellation.
func (i *item) resumeContext() (_ context.Context, begun, done func()) {
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

// left reports whether a run is to be left.
func (i *item) left() bool {
	select {
	case <-i.leave:
		return true
	default:
		return false
	}
}

// drainNow has a run left between its calls. The mutex of the workers is held.
func (i *item) drainNow() {
	if !i.drained() {
		close(i.drain)
	}
}

func (i *item) drained() bool {
	select {
	case <-i.drain:
		return true
	default:
		return false
	}
}

// waits reports whether a run that a worker has left is to be parked.
func (i *item) waits() bool {
	if !i.drained() || i.left() {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.progress == Left && i.view != nil
}

// letGo has a run left. The mutex of the workers is held.
func (i *item) letGo() {
	if !i.left() {
		close(i.leave)
	}
}

// heldAgain is when a run is tried again that another process drives.
const heldAgain = 2 * time.Second
