// Package loop executes an agent: ask the model, judge and run the calls it asks for, record everything in the journal, until there is an answer or a limit.
//
// Of this project it imports only api: the model, the policy, the person, the
// tools and the journal are small interfaces (ports.go), time and ids come from
// outside. One iteration, in this order:
//
//	new messages?    hear.go     messages of people join the conversation
//	still room?      compact.go  old output goes, a summary replaces old steps
//	budget left?     limits.go   before the call, with the worst case reserved
//	ask the model    stream.go   deltas become events; nothing runs while they come
//	an answer?       answer.go   the exit test, the output contract
//	the calls        calls.go    check, guard, decide, ask, intent, run, result
//
// Before the first request of a prompt, expand.go makes the calls that its author asks for
// in the text.
//
// In a run that is served, clients make the calls (serve.go, queue.go): a step does not
// wait for the one before it.
//
// Results go back to the model in call order, not in the order in which the
// calls ended: equal runs give equal requests, which replay and prompt caches need.
package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// Config is everything that a run needs. All interfaces but Inbox, Clients and Files are
// required.
type Config struct {
	Model    Model
	Gate     Gate
	Approver Approver
	Toolbox  Toolbox
	Journal  Journal
	// Files reports whether the workspace changed; nil: it is not known, and does
	// not count as progress.
	Files Files
	// Inbox is asked for messages before each request; nil: no messages can be
	// sent.
	Inbox Inbox

	// Clients are set for a run whose calls clients make: Model returns what they have
	// called since, and no call waits for the end of another one's step. nil: a model
	// makes the calls.
	Clients Clients

	// View is the run so far: run.started has been applied to it, and on a resume
	// everything up to run.resumed. The loop applies to it whatever it appends to
	// the journal.
	View *view.Run

	Limits  Limits
	Guard   Guard
	Answer  Answer
	Context Context
	// AskTime is how long a question waits for its answer, for display; 0: not
	// known, or never.
	AskTime time.Duration
	// Parked: the open questions of View were waiting all the time. A question
	// that is asked again keeps its deadline.
	Parked bool

	Now func() time.Time
	// NewID returns an id that is unique in the run and begins with kind.
	NewID func(kind string) string
}

// End is how a run ended.
type End struct {
	Reason reason.Reason
	// Message is why, Hint how to continue; both empty when the run completed.
	Message string
	Hint    string
	// Output is the final answer, or the newest text of a run that has none.
	Output string
	// Structured: Output is JSON that satisfies the schema which the answer must have.
	Structured bool
	// Suspended runs wait for an approval and can be resumed.
	Suspended bool
}

// Run executes the agent until there is an answer, a limit, or ctx ends. A
// cause of ctx that carries a reason becomes the reason of the end. The error
// is set only when the journal failed, after which nothing can be recorded.
func Run(ctx context.Context, cfg Config) (End, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &loop{Config: cfg, cancel: cancel, guard: guard{Guard: cfg.Guard}}
	execute := l.live
	if cfg.Clients != nil {
		execute = l.serve
	}
	end, err := execute(ctx)
	l.settle()
	if l.broken != nil {
		return End{}, l.broken
	}
	if err != nil {
		end = l.failed(ctx, err)
	}
	if end.Output == "" {
		end.Output = l.lastText
	}
	return end, nil
}

type loop struct {
	Config
	cancel context.CancelCauseFunc

	// mu guards the view and the order of events while calls run in parallel.
	mu sync.Mutex
	// broken is the journal's first error; nothing may happen after it.
	broken error
	late   lateSync

	guard    guard
	estimate estimate
	// lost is what requests of earlier processes took whose answer never came.
	lost message.Usage
	// state is that of the workspace before the calls of stateStep.
	state     string
	stateStep int

	// current is the answer whose step is in progress.
	current     *message.Message
	lastText    string
	emptyBefore bool // the answer before this one was empty
	corrections int  // of answers that broke the output contract
	waiting     map[string]openQuestion
	refused     bool // some call was denied
	unanswered  bool // some question was not answered
}

func (l *loop) live(ctx context.Context) (End, error) {
	l.recallQuestions()
	if end, err := l.expand(ctx); end != nil || err != nil {
		return deref(end), err
	}
	current, err := l.recall()
	if err != nil {
		return End{}, err
	}
	if l.current = current; current != nil {
		closing := l.Limits.MaxSteps > 0 && l.View.TurnSteps() > l.Limits.MaxSteps
		if end, err := l.handleAnswer(ctx, answerOf(current), closing); end != nil || err != nil {
			return deref(end), err
		}
	}
	for {
		if ctx.Err() != nil {
			return End{}, context.Cause(ctx)
		}
		if len(l.paused()) == 0 { // nothing comes between the parts of one turn
			if err := l.hear(l.incoming(ctx)); err != nil {
				return End{}, err
			}
		}
		if end, err := l.makeRoom(ctx); end != nil || err != nil {
			return deref(end), err
		}
		closing := l.Limits.MaxSteps > 0 && l.View.TurnSteps() >= l.Limits.MaxSteps
		if end := l.overLimit(); end != nil {
			if closing { // the closing request is a courtesy: the steps ended the run
				end = l.outOfSteps(&message.Output{})
			}
			return *end, nil
		}
		out, err := l.ask(ctx, closing)
		for tooLong(ctx, err) { // the second time in a row, overflowed ends the run
			if end, err := l.overflowed(ctx); end != nil || err != nil {
				return deref(end), err
			}
			out, err = l.request(ctx, closing)
		}
		if err != nil {
			return End{}, err
		}
		if len(out.Calls) > 0 {
			l.guard.stall.says(out.Text, l.View.Steps)
		}
		if end, err := l.handleAnswer(ctx, out, closing); end != nil || err != nil {
			return deref(end), err
		}
	}
}

// handleAnswer handles a complete answer: it does what the answer asks for. The End is
// set when the run is over.
func (l *loop) handleAnswer(ctx context.Context, out *message.Output, closing bool) (*End, error) {
	switch {
	case closing:
		l.finishStep(out)
		return l.outOfSteps(out), nil
	case l.brokenOff(out) != nil:
		if err := l.drop(out.Calls); err != nil {
			return nil, err
		}
		l.finishStep(out)
		return l.lastWord(ctx, out)
	case len(out.Calls) == 0 && out.Finish == message.FinishPause:
		l.finishStep(out)
		return l.pause(out)
	case len(out.Calls) == 0:
		l.finishStep(out)
		return l.lastWord(ctx, out)
	}
	end, err := l.act(ctx, out.Calls)
	if err != nil || end != nil && end.Suspended {
		return end, err
	}
	l.snapshot(ctx)
	l.finishStep(out)
	if end != nil {
		return end, nil
	}
	return nil, l.remember(l.current)
}

// remember adds a complete message to the conversation.
func (l *loop) remember(m *message.Message) error {
	l.estimate.add(m)
	return l.Model.Append(m)
}

// record appends one event to the journal and folds it into the view. After a
// failed write the run is over: what cannot be recorded must not happen.
func (l *loop) record(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	e.Time = l.Now()
	e, err := l.Journal.Append(e)
	if err == nil {
		err = l.View.Apply(e)
	}
	if err != nil {
		l.breakdown(reason.New(reason.Internal, "write the journal: %w", err))
	}
	return l.broken
}

// breakdown stops everything that runs. The caller holds mu.
func (l *loop) breakdown(err error) {
	if l.broken == nil {
		l.broken = err
		l.cancel(err)
	}
}

// finishStep closes the step, unless an earlier process has.
func (l *loop) finishStep(out *message.Output) { l.finishStepOf(l.current, l.View.Steps, out) }

func (l *loop) finishStepOf(m *message.Message, step int, out *message.Output) {
	if slices.ContainsFunc(m.Parts, func(p message.Part) bool { return p.Type == message.PartStepFinish }) {
		return
	}
	finish := event.StepFinish{Step: step, Finish: out.Finish, Tokens: out.Usage}
	if m.Estimate == nil {
		finish.Cost = l.Limits.cost(out.Model, out.Usage)
	}
	if calls := m.Calls(); len(calls) > 0 {
		finish.Calls = &message.CallCounts{}
		for _, c := range calls {
			*finish.Calls = finish.Calls.Add(c.Counts())
		}
	}
	// A failed write is kept in l.broken and ends the run there.
	_ = l.record(event.Event{Message: m.ID, Part: l.NewID("part"), Data: finish})
}

// said keeps the newest text, the partial output of a run that has no answer.
func (l *loop) said(text string) {
	if strings.TrimSpace(text) != "" {
		l.lastText = text
	}
}

// failed turns an error into an end. The cause of a cancelled context explains
// more than the error that it led to.
func (l *loop) failed(ctx context.Context, err error) End {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		err = reason.New(reason.Cancelled, "the run was cancelled")
	}
	return End{Reason: reason.Of(err), Message: err.Error(), Hint: reason.Hint(err)}
}

func deref(e *End) End {
	if e == nil {
		return End{}
	}
	return *e
}
