// Package execution runs the loop of a run with everything that it records, from the first event to the last.
package execution

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/secret"
)

// Execution is one run in this process. Begin it with Start or Resume, and end it with
// Finish, or with Abandon where it did not begin.
type Execution struct {
	// Run is the id of the run, Dir its folder.
	Run, Dir string
	Recorder *Recorder
	// View is the loop's own fold of the run: only what the loop has recorded, in its
	// order. It is not the fold of the Recorder, for two reasons. The loop reads it without
	// a lock, and hands its messages to a model connection that reads them during a
	// request; the Recorder changes its fold at any moment, for the warnings, questions,
	// connections and snapshots that others record, and those become parts of the same
	// messages. And requests that are made from it are the same in every run and replay,
	// while what others record comes whenever it comes. A copy under a lock before each
	// use would cost more than the second fold: the texts belong to the events, which
	// both folds share, so what exists twice are the structures around them.
	View *view.Run

	journal *journal.Writer
	inbox   *inbox.Inbox
	newID   func(kind string) string
}

// New returns an execution that records into an open journal. Watch, which may be nil, is
// called with every event from now on.
func New(j *journal.Writer, run, dir string, newID func(kind string) string, watch func(event.Event)) *Execution {
	return &Execution{Run: run, Dir: dir, Recorder: NewRecorder(j, dir, watch), View: &view.Run{}, journal: j, newID: newID}
}

// Start records the first event of the run.
func (x *Execution) Start(started event.RunStarted) error {
	var err error
	if x.inbox, err = openInbox(x.Run, x.Dir, x.Recorder); err != nil {
		return err
	}
	return x.append(event.Event{Message: x.newID("msg"), Part: x.newID("part"), Data: started})
}

// Resume durably records that the run continues, with another turn if it had ended. Its View, and that of the Recorder, are
// the run so far. A warning, where there is one, is recorded behind it.
func (x *Execution) Resume(resumed event.RunResumed, warning string) error {
	resumed.Attempt = x.View.Attempt + 1
	e := event.Event{Data: resumed}
	if resumed.Turn != nil {
		e.Message, e.Part = x.newID("msg"), x.newID("part")
	}
	if err := x.append(e); err != nil {
		return err
	}
	if warning != "" {
		if err := x.Recorder.Record(event.Warning{Message: warning}); err != nil {
			return err
		}
	}
	var err error
	if x.inbox, err = openInbox(x.Run, x.Dir, x.Recorder); err != nil {
		return err
	}
	return x.Recorder.Sync()
}

func (x *Execution) append(e event.Event) error {
	recorded, err := x.Recorder.Append(e)
	if err != nil {
		return err
	}
	return x.View.Apply(recorded)
}

// Abandon closes the journal of a run that did not begin.
func (x *Execution) Abandon(ctx context.Context, kill <-chan struct{}) error {
	x.Recorder.End(ctx, kill)
	return x.journal.Close()
}

// Settle makes durable what has been recorded so far, beside other work. The function it
// returns waits for that.
func (x *Execution) Settle() (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- x.Recorder.Sync() }()
	return sync.OnceValue(func() error { return <-done })
}

// Setup is what the loop of a run works with. Sent, Parked and Observe may be zero.
type Setup struct {
	Models   Models
	Redactor *secret.Redactor
	Gate     *Gate
	People   *People
	Toolbox  loop.Toolbox
	Files    loop.Files

	// Model is asked in place of Models; nil: these are.
	Model loop.Model
	// Offered is what the model is sent before the conversation.
	Offered message.Prompt
	Limits  loop.Limits
	Guard   loop.Guard
	Answer  loop.Answer
	Context loop.Context
	// Parked means that the open questions were waiting all the time.
	Parked bool
	// Sent are the messages of a recorded run that is run again.
	Sent []Sent

	// Observe is called with what the loop is given.
	Observe func(*loop.Config)
	// Ready waits for what must be there before a model is asked.
	Ready func(context.Context) error
}

// Loop runs the loop until it ends.
func (x *Execution) Loop(ctx context.Context, s Setup) (loop.End, error) {
	defer s.Models.Transport.CloseIdleConnections()
	conversation := s.Model
	if conversation == nil {
		var err error
		if conversation, err = s.Models.open(s.Offered); err != nil {
			return loop.End{}, err
		}
	}
	defer closing(conversation)()
	cfg := loop.Config{
		Model: redact(conversation, s.Redactor), Gate: s.Gate, Approver: s.People.approver, Toolbox: s.Toolbox, Journal: x.Recorder,
		Inbox: x.inbox, Files: s.Files, View: x.View, Now: time.Now, AskTime: s.People.wait, Parked: s.Parked, NewID: x.newID,
		Limits: s.Limits, Guard: s.Guard, Answer: s.Answer, Context: s.Context,
	}
	if len(s.Sent) > 0 {
		cfg.Inbox = &replayInbox{x.inbox, x.View, s.Sent}
	}
	if m := s.Models.Summarizer; m != nil {
		summarizer, err := s.Models.begin(m, message.Prompt{})
		if err != nil {
			return loop.End{}, fmt.Errorf("agent %q: spec.context.modelRef: %w", s.Models.Agent, err)
		}
		defer closing(summarizer)()
		cfg.Context.Summarizer = redact(summarizer, s.Redactor)
	}
	if s.Observe != nil {
		s.Observe(&cfg)
	}
	if err := s.Ready(ctx); err != nil {
		return loop.End{}, err
	}
	return loop.Run(ctx, cfg)
}

// Left reports whether the run was left as it is, for a resume.
func (x *Execution) Left() bool { return x.Recorder.hasLeft() }

func left(err error) bool { return errors.Is(err, errLeft) }
