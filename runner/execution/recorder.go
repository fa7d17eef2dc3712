package execution

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/tool"
)

// askPatience bounds the wait of a question for the events before it.
const askPatience = 2 * time.Second

// Recorder passes every event of a run on, in one order: to the journal, to the fold
// that reports read, and to the watcher.
type Recorder struct {
	journal *journal.Writer
	// feed notifies the watcher; nil when there is none.
	feed *journal.Feed

	mu   sync.Mutex
	view view.Run
	// left means that nothing more is written.
	left bool
	// drained is closed when a run that is to begin nothing further has been left; nil:
	// the run continues.
	drained chan struct{}
}

// errLeft is the error of an event that comes after the run was left.
var errLeft = errors.New("the run was left as it stands")

// NewRecorder records into the journal in dir. Watch, which may be nil, is called with
// the events from now on. End it.
func NewRecorder(j *journal.Writer, dir string, watch func(event.Event)) *Recorder {
	r := &Recorder{journal: j}
	if watch != nil {
		last, _ := j.Head()
		r.feed = journal.NewFeed(dir, last, watch)
	}
	return r
}

// Append implements loop.Journal. It returns the event as it is in the
// journal: numbered, and without secrets.
func (r *Recorder) Append(e event.Event) (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.append(e)
}

// appendIf appends an event if the run, as it is in the journal at that moment, still
// allows it; otherwise the error is errNotAsked.
func (r *Recorder) appendIf(e event.Event, allows func(*view.Run) bool) (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !allows(&r.view) {
		return e, errNotAsked
	}
	return r.append(e)
}

// append is Append with the mutex held.
func (r *Recorder) append(e event.Event) (event.Event, error) {
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
func (r *Recorder) Sync() error { return r.journal.Sync() }

// GetBlob returns what PutBlob has kept.
func (r *Recorder) GetBlob(id string) ([]byte, error) { return r.journal.GetBlob(id) }

// PutBlob implements loop.Journal.
func (r *Recorder) PutBlob(b []byte) (string, error) { return r.journal.PutBlob(b) }

// shown waits a moment until the watcher has received everything so far.
func (r *Recorder) shown(ctx context.Context) {
	if r.feed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	r.feed.Flush(ctx)
}

// End ends the notification of the watcher, and returns how many events it did not
// receive.
func (r *Recorder) End(ctx context.Context, giveUp <-chan struct{}) int64 {
	if r.feed == nil {
		return 0
	}
	return r.feed.End(ctx, giveUp)
}

// Record appends an event that belongs to the run as a whole.
func (r *Recorder) Record(p event.Payload) error {
	_, err := r.Append(event.Event{Data: p})
	return err
}

// Inform records what a call that runs says of itself. One that has ended says nothing more;
// a journal that fails ends the run for the same reason.
func (r *Recorder) Inform(call, title string, metadata json.RawMessage) {
	var of string
	r.See(func(v *view.Run) { of = v.MessageOf(call) })
	_, _ = r.appendIf(event.Event{Message: of, Call: call, Data: event.ToolProgress{Title: title, Metadata: metadata}}, func(v *view.Run) bool {
		c := v.Call(call)
		return c != nil && c.State == message.StateRunning
	})
}

// Past lists the calls that have completed, for a program that is started in the middle
// of the run.
func (r *Recorder) Past() []tool.Past {
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

// hasLeft reports whether nothing more is written.
func (r *Recorder) hasLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// Run is the fold of the journal. It is for one goroutine, when nothing is recorded any more.
func (r *Recorder) Run() *view.Run { return &r.view }

// See calls look with the run as it is in the journal.
func (r *Recorder) See(look func(*view.Run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(&r.view)
}

// Copy is that of view.Run.
func (r *Recorder) Copy(name string) (found *message.ChildRun) {
	r.See(func(v *view.Run) { found = v.Copy(name) })
	return found
}

// Todos is the todo list of the run as it is in the journal.
func (r *Recorder) Todos() (list message.Todos) {
	r.See(func(v *view.Run) { list = v.Todos })
	return list
}

// Prepared are the items for publication that are in the journal.
func (r *Recorder) Prepared() (all []message.Publication) {
	r.See(func(v *view.Run) {
		for i := range v.Publications {
			all = append(all, v.Publications[i].Publication)
		}
	})
	return all
}

// History is the conversation so far, for a tool that asks: the newest messages as they
// are in the journal, and so without secrets.
func (r *Recorder) History(_ context.Context, most int) (said []host.Message, err error) {
	r.See(func(v *view.Run) {
		for _, m := range v.Messages {
			if text := m.Text(); text != "" {
				said = append(said, host.Message{Role: string(m.Role), Text: text})
			}
			for _, c := range m.Calls() {
				if c.Result != nil && c.Result.Text != "" {
					said = append(said, host.Message{Role: "tool", Text: c.Result.Text})
				}
			}
		}
	})
	if most > 0 && len(said) > most {
		said = said[len(said)-most:]
	}
	return said, nil
}
