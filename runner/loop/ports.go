package loop

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Model is a conversation with a model. It belongs to one run and is used by
// one goroutine. It keeps the encoded form of everything appended, so that a
// turn encodes only what is new.
type Model interface {
	// Append adds a complete message to the conversation: the user's, or the
	// model's own with every tool part completed or error.
	Append(m *message.Message) error
	// Reset replaces the conversation by history: after pruning or a compaction.
	// Earlier messages count as answered.
	Reset(history []*message.Message) error
	// Next asks for the answer to everything appended so far. Pieces are passed
	// to emit while they arrive; an error of emit stops the stream. The model
	// retries by itself: emit gets a DeltaRetry, and what was streamed before it
	// is void. An error has a reason (package reason).
	Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error)
}

// Gate decides whether a call may run. It does not block on people: an Ask is
// returned as such and the loop consults the Approver.
//
//	Action        error   the loop then
//	Allow         nil     writes the intent and runs the tool
//	Redact        nil     does the same with Decision.Args
//	Deny          nil     returns an error part to the model
//	Ask           nil     asks; without an answer acts as declared
//	zero value    any     denies: an unknown decision is a refusal
//	any           non-nil denies and records the error; the run continues
type Gate interface {
	//
	// A call with Again set has been judged before and is about to run: the
	// files that it names may have changed while a person was asked or other
	// calls ran.
	Decide(ctx context.Context, call message.ToolCall) (message.Decision, error)
	// Review judges a result before the model sees it and returns what may be
	// shown; an error withholds the result.
	Review(ctx context.Context, call message.ToolCall, result *message.ToolResult) (*message.ToolResult, error)
}

// Approver asks a person, or a program in their place. It returns within the
// deadline it was built with; it never returns an empty state without an error.
type Approver interface {
	Ask(ctx context.Context, q message.Question) (message.Answer, error)
}

// Observer is an Approver that is notified when its answer is in the journal.
type Observer interface {
	Decided(call string, a message.Answer)
}

// Clients make the calls of a run, in place of a model.
type Clients interface {
	// Within returns a context that also ends when the client of a call no longer waits
	// for it. The function it returns releases what the context holds.
	Within(ctx context.Context, call string) (context.Context, func())
}

// Toolbox checks and runs calls.
type Toolbox interface {
	// Check turns what the model wrote into a call that the policy can judge: it
	// repairs the name, parses the arguments and validates them against the
	// schema. A *message.CallError is for the model to read.
	Check(req message.CallRequest) (message.Checked, error)
	// Run executes a call that was allowed. Failures of the tool are results;
	// an error means that the tool could not be asked at all and ends the run.
	Run(ctx context.Context, call message.ToolCall, progress func(text string)) (*message.ToolResult, error)
}

// Inbox has the messages of people to the run during its execution. It is asked
// between steps, by one goroutine.
type Inbox interface {
	// Take returns the new messages, the oldest first. A message may come again
	// until Heard was called with it.
	Take(ctx context.Context) []message.Incoming
	// Heard is called with messages that are durable in the journal: they need
	// not be kept elsewhere.
	Heard(messages []message.Incoming)
	// Close is called before a run ends with its final answer: no more messages
	// are accepted then. If there are messages since Take, it does nothing and
	// returns false; they may be taken now.
	Close() bool
}

// Journal is the memory of the run. Append is quick; Sync returns when every
// event appended before it was called will survive a crash.
type Journal interface {
	Append(e event.Event) (event.Event, error)
	Sync() error
	// PutBlob keeps a text that an event names; it is durable with the event.
	PutBlob(b []byte) (id string, err error)
}

// Files is the workspace of the run.
type Files interface {
	// State returns an identity of the contents of the files: equal contents
	// have equal states. It is called before a call that resembles an earlier
	// one, while no call runs; "?" means that the state could not be determined
	// in a reasonable time, "" that it is not known at all.
	State(ctx context.Context, call string) string
	// Snapshot records the files after a step in which a call may have changed them, while
	// no call runs. What cannot be recorded does not stop the run.
	Snapshot(ctx context.Context, step int)
}

// Budget is what the runs that have started this one still have for it and its siblings.
type Budget interface {
	// Reserve keeps room for one request, in place of what was kept before; the cost is
	// nil where it is not known. It returns why there is no room, "" if there is.
	Reserve(tokens int64, cost *message.Cost) string
	// Settle gives the room back: what the request took is in the journal.
	Settle()
}
