package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/tool"
)

// askPatience bounds the wait of a question for the events before it.
const askPatience = 2 * time.Second

// recorder is where every event of a run passes: into the journal, into the
// view that reports read, and to whoever watches, in one order.
type recorder struct {
	journal *journal.Writer
	// feed tells the watcher; nil when there is none.
	feed *journal.Feed

	mu   sync.Mutex
	view view.Run
	// left says that nothing more is written.
	left bool
	// drained is closed when the run is left because it is to begin nothing further;
	// nil: it goes on.
	drained chan struct{}
}

// errLeft is the error of whatever is to be written into a run that was left.
var errLeft = errors.New("the run was left as it stands")

// newRecorder records into the journal in dir. What is there already is not told
// to watch, which may be nil. End it.
func newRecorder(j *journal.Writer, dir string, watch func(event.Event)) *recorder {
	r := &recorder{journal: j}
	if watch != nil {
		last, _ := j.Head()
		r.feed = journal.NewFeed(dir, last, watch)
	}
	return r
}

// Append implements loop.Journal. It returns the event as it stands in the
// journal: numbered, and without secrets.
func (r *recorder) Append(e event.Event) (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.append(e)
}

// appendIf appends an event if the run, as it is in the journal at that moment,
// still allows it; else the error is errNotAsked.
func (r *recorder) appendIf(e event.Event, allows func(*view.Run) bool) (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !allows(&r.view) {
		return e, errNotAsked
	}
	return r.append(e)
}

// append is Append with the mutex held.
func (r *recorder) append(e event.Event) (event.Event, error) {
	if r.drained != nil && !r.left && begins(e.Data) && !r.busy() {
		r.left = true
		close(r.drained)
	}
	if r.left {
		return e, errLeft
	}
	e, err := r.journal.Append(e)
	if err != nil {
		return e, err
	}
	if r.feed != nil {
		r.feed.Offer(e)
	}
	err = r.view.Apply(e)
	r.leaveIfWaiting() // what was in progress may have ended with this event
	return e, err
}

// Sync implements loop.Journal.
func (r *recorder) Sync() error { return r.journal.Sync() }

// PutBlob implements loop.Journal.
func (r *recorder) PutBlob(b []byte) (string, error) { return r.journal.PutBlob(b) }

// shown waits a moment until the watcher has been told everything so far.
func (r *recorder) shown(ctx context.Context) {
	if r.feed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	r.feed.Flush(ctx)
}

// end ends what tells the watcher, and returns how many events it did not take.
func (r *recorder) end(ctx context.Context, giveUp <-chan struct{}) int64 {
	if r.feed == nil {
		return 0
	}
	return r.feed.End(ctx, giveUp)
}

func (r *recorder) tell(p event.Payload) error {
	_, err := r.Append(event.Event{Data: p})
	return err
}

// past lists the calls that have completed, for a program that is started in the
// middle of the run.
func (r *recorder) past() []tool.Past {
	r.mu.Lock()
	defer r.mu.Unlock()
	var past []tool.Past
	for _, m := range r.view.Messages {
		for _, c := range m.Calls() {
			if c.State == message.StateCompleted && len(c.Result.Metadata) > 0 {
				past = append(past, tool.Past{Tool: c.Tool, Metadata: c.Result.Metadata})
			}
		}
	}
	return past
}

// hasLeft says whether nothing more is written.
func (r *recorder) hasLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// used is what a run has used of its limits.
type used struct {
	Tokens  message.Usage
	Steps   int
	Started time.Time
	Cost    message.Cost
	// Granted and Refused count the answers to questions.
	Granted, Refused int
}

func (r *recorder) used() used {
	r.mu.Lock()
	defer r.mu.Unlock()
	return used{r.view.Tokens, r.view.Steps, r.view.StartTime, r.view.Cost, r.view.Granted, r.view.Refused}
}
