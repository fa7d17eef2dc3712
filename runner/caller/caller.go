// Package caller lets clients make the calls of a run, in place of a model.
//
// A Caller stands between both. A client calls Call and waits. The loop asks the
// Caller as it asks a model: the next call of a client is the next answer.
// So each call is checked, judged, approved, recorded and run like any other. It does
// not wait for calls of earlier answers, and its result is returned to the client as
// soon as it is in the journal.
package caller

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Request is a call of a client.
type Request struct {
	// Client is the name of the program that calls, for the journal.
	Client string
	// Tool and Args are as the client wrote them.
	Tool, Args string
	// Notify is called with what happens to the call while it runs, by the goroutine
	// that called Call. What it is too slow for is left out. Optional.
	Notify func(Note)
	// Ask lets the client answer when a rule asks for an approval. Optional.
	Ask func(ctx context.Context, q message.Question) (message.Answer, error)
}

// Note is something that happened to a call before its result.
type Note struct {
	// Output is what the call has written since the last note.
	Output string
	// Asked is the question that a person must answer; nil is none.
	Asked *event.ApprovalRequested
	// Call is the id of the call in its run.
	Call string
}

// Response is the result of a call, as it is in the journal.
type Response struct {
	// Call is the id of the call in its run.
	Call   string
	Result message.ToolResult
}

// Offer is what a run that has begun offers to clients.
type Offer struct {
	// Run is the id of the run.
	Run   string
	Tools []message.ToolSpec
	// Files is the folder in which the calls work, Source the one it is a copy of: ""
	// where the folder is not a copy, or an empty one.
	Files, Source string
	// Blob returns a file that a result attaches, by the id in its URL.
	Blob func(id string) ([]byte, error)
}

// Errors of Call for calls that the run never saw.
var (
	ErrOver = errors.New("the run that served the tools has ended")
	ErrBusy = errors.New("too many calls of this run have no result yet: try again after the results of others")
)

// errGone is the cause of calls that end because their client no longer waits.
var errGone = reason.New(reason.Cancelled, "the client no longer waits for it")

const (
	// mostCalls bounds the calls without a result: those that wait for the run, for
	// their turn or for a person, and those that run.
	mostCalls = 256
	// mostNotes is how many notes a slow client may be behind.
	mostNotes = 64
)

// Caller carries calls of clients to one run. Make it with New.
type Caller struct {
	mu      sync.Mutex
	waiting []*call
	// taken are the calls that the run has taken, by their ids.
	taken  map[string]*call
	closed bool
	began  bool
	offer  Offer

	arrived chan struct{} // has room for one: something was added to waiting, or closed
	ready   chan struct{} // closed when the offer is known
	over    chan struct{} // closed when the run has ended
}

// call is a call on its way.
type call struct {
	Request
	id     string
	gone   <-chan struct{} // closed when the client no longer waits
	answer chan message.ToolResult
	notes  chan Note
}

// New returns a Caller for a run that is about to begin.
func New() *Caller {
	return &Caller{taken: map[string]*call{}, arrived: make(chan struct{}, 1), ready: make(chan struct{}), over: make(chan struct{})}
}

// Offer waits for the run to begin, and returns what it offers.
func (c *Caller) Offer(ctx context.Context) (Offer, error) {
	select {
	case <-c.ready:
		return c.offer, nil
	case <-c.over:
		return Offer{}, ErrOver
	case <-ctx.Done():
		return Offer{}, context.Cause(ctx)
	}
}

// Call makes a call and waits for its result. When ctx ends, a call that waits is
// withdrawn, and one that runs is ended like a call of a run that is cancelled.
// It may be called by many goroutines.
func (c *Caller) Call(ctx context.Context, r Request) (*Response, error) {
	p := &call{Request: r, gone: ctx.Done(), answer: make(chan message.ToolResult, 1), notes: make(chan Note, mostNotes)}
	if err := c.add(p); err != nil {
		return nil, err
	}
	for {
		select {
		case note := <-p.notes:
			p.tell(note)
		case result := <-p.answer:
			p.tellRest()
			return &Response{Call: c.idOf(p), Result: result}, nil
		case <-c.over:
			select {
			case result := <-p.answer:
				p.tellRest()
				return &Response{Call: c.idOf(p), Result: result}, nil
			default:
				return nil, ErrOver
			}
		case <-ctx.Done():
			c.withdraw(p)
			return nil, context.Cause(ctx)
		}
	}
}

func (p *call) tell(n Note) {
	if p.Notify != nil {
		p.Notify(n)
	}
}

// tellRest hands on what happened before the result.
func (p *call) tellRest() {
	for {
		select {
		case n := <-p.notes:
			p.tell(n)
		default:
			return
		}
	}
}

func (c *Caller) add(p *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrOver
	case len(c.waiting)+len(c.taken) >= mostCalls:
		return ErrBusy
	}
	c.waiting = append(c.waiting, p)
	c.wake()
	return nil
}

// wake lets the loop look again. The caller holds mu.
func (c *Caller) wake() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *Caller) withdraw(p *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w *call) bool { return w == p })
}

func (c *Caller) idOf(p *call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.id
}

// Close refuses further calls. The run ends after those that are waiting.
func (c *Caller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake()
}

// End is called when the run has ended, or has not begun: nobody waits any longer.
func (c *Caller) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	select {
	case <-c.over:
	default:
		close(c.over)
	}
}

// Begin tells clients what the run offers.
func (c *Caller) Begin(o Offer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.began {
		c.began, c.offer = true, o
		close(c.ready)
	}
}

// take returns the oldest call that waits, nil if there is none. Each is an answer of its
// own. More is false when nothing will come after it.
func (c *Caller) take(newID func(kind string) string) (p *call, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		p, c.waiting = c.waiting[0], c.waiting[1:]
		p.id = newID("call")
		c.taken[p.id] = p
	}
	return p, !c.closed || len(c.waiting) > 0
}

// find returns a call that the run has taken and that has no result; nil if there is none.
func (c *Caller) find(id string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[id]
}

// saw hands on what an event of the journal means for a call. It does not block.
func (c *Caller) saw(e event.Event) {
	p := c.find(e.Call)
	if p == nil {
		return
	}
	switch d := e.Data.(type) {
	case event.ToolProgress:
		if text := cmp.Or(d.Text, d.Title); text != "" {
			p.note(Note{Call: e.Call, Output: text})
		}
	case event.ApprovalRequested:
		p.note(Note{Call: e.Call, Asked: &d})
	case event.ToolResult:
		c.finish(e.Call, p, d.ToolResult)
	case event.ToolError:
		c.finish(e.Call, p, d.ToolResult)
	}
}

func (p *call) note(n Note) {
	select {
	case p.notes <- n:
	default: // the client is too slow; the result holds all of it
	}
}

func (c *Caller) finish(id string, p *call, result message.ToolResult) {
	c.mu.Lock()
	delete(c.taken, id)
	c.mu.Unlock()
	p.answer <- result // has room, and a call has one result
}
