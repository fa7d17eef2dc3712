// Package view folds the events of a run into what can be seen of it.
//
// There is one fold. The loop, the terminal, the web page, reports, resume and
// replay all read a run through it, so that they cannot disagree.
package view

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Phases of a run.
const (
	Running   = "Running"
	Suspended = "Suspended"
	Succeeded = "Succeeded"
	Failed    = "Failed"
	Cancelled = "Cancelled"
)

// Run is the state of a run after its events. The zero value is a run without events.
type Run struct {
	ID    string
	Phase string

	// Started is the event that opened the run, with what its newest turn has declared
	// since; Finished is the event that closed it, nil until then.
	Started  event.RunStarted
	Finished *event.RunFinished

	// Turns of the conversation in order; a run has one, unless it went on after its end.
	Turns []*Turn

	StartTime, EndTime time.Time
	// Attempt counts the processes that have worked on the run, from 1.
	Attempt int

	// Messages in order; the last one may still be streamed.
	Messages []*message.Message
	// Steps counts the model calls that were begun, summaries left out. One that
	// a crash cut off counts once, with the request that is sent again.
	Steps int
	// Tokens and Cost of all answers that are complete; Unpriced says that the
	// price of some is not known.
	Tokens   message.Usage
	Cost     message.Cost
	Unpriced bool
	// Uncounted says that the provider did not count some answers: Tokens and Cost
	// are too low by what Estimated guesses.
	Uncounted bool
	Estimated message.Usage

	// Counted are the calls of all steps that are finished, by outcome.
	Counted message.CallCounts

	// Changes the run made to the files, and the blobs that hold them.
	Changes event.WorkspacePatch
	// Applied is set when the run has applied its change to the source folder itself.
	Applied *event.WorkspaceApplied
	// AppliedLater counts how often a person has applied it, while the run was suspended or
	// after its end.
	AppliedLater int
	// InSource says that the source folder has the newest Changes.
	InSource bool
	// Described are the functions of the Tools that provide several, in order.
	Described []event.ToolsDescribed
	// Warnings in order.
	Warnings []string
	// PendingApprovals are the calls that wait for an answer: to whether they may
	// run, or, while they run, to a question of their own (see Inquiry).
	PendingApprovals []string
	// Granted and Refused count the answers to questions: what a person or the
	// command line has approved, and what was rejected.
	Granted, Refused int
	// Remembered is what approvals for always have allowed so far.
	Remembered []message.Grant

	// Todos is the todo list that the agent keeps, nil when it has written none.
	Todos message.Todos

	// Publications are the items that the run has prepared, in order.
	Publications []Publication

	// Snapshot is the blob that lists the files before the run; "" until a program runs.
	Snapshot string
	// FilesState is the blob of their newest recorded state.
	FilesState string
	// FilesUnknown says that a state after it could not be recorded.
	FilesUnknown bool
	// FilesKept are the bytes of contents that were stored for all recorded states.
	FilesKept int64

	// LastSeq and LastTime are the number and the time of the last event.
	LastSeq  int64
	LastTime time.Time

	// reverts are those that can be undone, the newest last.
	reverts []revert

	messages map[string]*message.Message
	calls    map[string]*call
	received map[string]bool
	// open is the message that is being written, asked the newest user message.
	open, asked *message.Message

	// since is when the newest process took up the run, worked what earlier
	// ones spent on it.
	since  time.Time
	worked time.Duration
}

// Worked is the time that processes spent on the run until now: what lay
// between a crash, or a suspension, and the resume is not part of it.
func (r *Run) Worked(now time.Time) time.Duration {
	switch {
	case r.Attempt == 0:
		return 0
	case r.Finished != nil:
		now = r.EndTime
	}
	return r.worked + max(0, now.Sub(r.since)) // a clock may be set back
}

// DeclaredAs is the call name of the Tool that a call is of: another one only for a
// function of a Tool that provides several.
func (r *Run) DeclaredAs(tool string) string {
	for _, d := range r.Described {
		if slices.Contains(d.Functions, tool) {
			return d.Tool
		}
	}
	return tool
}

// Apply adds one event. An event that the rules forbid, such as a result for a
// call that has ended, changes nothing and is an error; an event of an unknown
// type only counts.
func (r *Run) Apply(e event.Event) error {
	if r.calls == nil {
		r.messages, r.calls, r.received = map[string]*message.Message{}, map[string]*call{}, map[string]bool{}
	}
	if err := r.apply(e); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type(), err)
	}
	if e.Seq > 0 {
		r.LastSeq = e.Seq
	}
	r.LastTime = e.Time
	return nil
}

func (r *Run) apply(e event.Event) error {
	if err := r.expects(e); err != nil {
		return err
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		return r.start(e, d)
	case event.RunResumed:
		return r.resume(e, d)
	case event.RunFinished:
		r.finish(e, d)
	case event.StepStart:
		r.Steps = d.Step
	case event.StepFinish:
		return r.finishStep(e, d)
	case event.ContextPrune:
		return r.prune(e, d)
	case event.WorkspaceSnapshot:
		if d.Step == 0 {
			r.Snapshot = d.Snapshot
		}
		if r.FilesUnknown = d.Error != ""; r.FilesUnknown {
			break
		}
		r.FilesState, r.FilesKept = d.Snapshot, r.FilesKept+d.Kept
		r.note(e, message.Part{Type: message.PartSnapshot, Snapshot: &message.Snapshot{Hash: d.Snapshot}})
	case event.WorkspacePatch:
		r.Changes, r.InSource = d, false
		r.note(e, message.Part{Type: message.PartPatch, Patch: patch(d)})
	case event.WorkspaceApplied:
		r.InSource = d.By == "" || d.Change == r.Changes.Change
		if d.By == "" {
			r.Applied = &d
		} else {
			r.AppliedLater++
		}
	case event.RunReverted:
		return r.revert(d)
	case event.PublishItem:
		return r.publish(e, d)
	case event.ToolsDescribed:
		r.Described = append(slices.DeleteFunc(r.Described, func(was event.ToolsDescribed) bool { return was.Tool == d.Tool }), d)
	case event.Warning:
		r.Warnings = append(r.Warnings, d.Message)
	case event.EgressConnection, event.SecretResolved, event.Unknown: // of interest to watchers and auditors only
	default:
		return r.applyMessage(e)
	}
	return nil
}

// expects reports whether an event may come at all at this time.
func (r *Run) expects(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunStarted:
		if r.Attempt > 0 || r.Finished != nil {
			return errors.New("the run has begun already")
		}
	case event.RunResumed:
		ended := r.Finished != nil && r.Phase != Suspended
		switch {
		case ended && d.Turn == nil:
			return errors.New("the run has ended")
		case !ended && d.Turn != nil:
			return errors.New("the turn before has not ended")
		case d.Turn == nil:
		case d.Turn.Number != len(r.Turns)+1:
			return fmt.Errorf("turn %d comes after turn %d", d.Turn.Number, len(r.Turns))
		case r.messages[e.Message] != nil && e.Message != "":
			return fmt.Errorf("message %q exists", e.Message)
		}
	case event.RunFinished, event.Warning, event.Unknown, event.WorkspaceSnapshot, event.WorkspacePatch:
		return nil // a run that cannot begin is recorded, too
	case event.WorkspaceApplied: // after the end a person may apply the change
		if r.Finished != nil && d.By == "" {
			return errors.New("the run has ended")
		}
	case event.PublishItem, event.RunReverted:
		if r.Finished == nil || r.Phase == Suspended {
			return errors.New("the run has not ended")
		}
	default:
		if r.Finished != nil {
			return errors.New("the run has ended")
		}
	}
	if _, begins := e.Data.(event.RunStarted); !begins && r.Attempt == 0 {
		return errors.New("the run has not begun")
	}
	return nil
}

func (r *Run) start(e event.Event, d event.RunStarted) error {
	r.ID, r.Phase, r.Started, r.StartTime, r.since, r.Attempt = e.Run, Running, d, e.Time, e.Time, 1
	if err := r.user(e, d.Prompt, false, d.Origin); err != nil {
		return err
	}
	r.turn(e, nil)
	return nil
}

// resume takes up a run: what was asked and not answered is void, and whoever
// was asked is asked again.
func (r *Run) resume(e event.Event, d event.RunResumed) error {
	if d.Attempt <= r.Attempt {
		return fmt.Errorf("attempt %d comes after attempt %d", d.Attempt, r.Attempt)
	}
	r.worked = r.Worked(r.LastTime)
	r.since, r.Attempt, r.Phase, r.Finished, r.EndTime = e.Time, d.Attempt, Running, nil, time.Time{}
	if t := r.Turn(); t != nil && d.Turn == nil { // it was suspended
		t.Finished, t.EndTime = nil, time.Time{}
	}
	r.closeInquiries()
	r.PendingApprovals = nil
	r.void(e.Time)
	// A step that was begun and not answered begins again.
	r.Steps = 0
	for _, m := range r.Messages {
		if m.Role == message.RoleAssistant && !m.Summary && (m.Error == "" || m.Error == message.Reverted) {
			r.Steps++
		}
	}
	switch {
	case d.Turn != nil:
		return r.goOnWith(e, d)
	case d.Fork != nil:
		r.declare(d)
	}
	return nil
}

// finish closes the run, the message that was being written, and, unless
// the run waits for a person, the calls that have no result.
func (r *Run) finish(e event.Event, d event.RunFinished) {
	r.Finished, r.Phase, r.EndTime = &d, d.Phase, e.Time
	if t := r.Turn(); t != nil {
		t.Finished, t.EndTime = &d, e.Time
	}
	if m := r.open; m != nil {
		now := e.Time.UnixMilli()
		m.Error, m.Time.Completed = message.Aborted, now
		closeParts(m, now)
		r.open = nil
	}
	r.closeInquiries()
	if d.Phase == Suspended {
		return
	}
	r.PendingApprovals = nil
	for _, c := range r.calls {
		if c.open() {
			c.end(message.StateError, &message.ToolResult{Code: message.CodeCancelled, Text: "the run ended before this call had a result"}, e.Time)
		}
	}
}

// closeInquiries closes the open questions of running calls: the process that
// asked them has ended, and nothing takes an answer any more.
func (r *Run) closeInquiries() {
	for id, c := range r.calls {
		if c.inquiry != nil {
			c.inquiry = nil
			r.decided(id)
		}
	}
}

// closeParts ends the text that was being written. A call ends with its result.
func closeParts(m *message.Message, now int64) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.End == 0 && p.Tool == nil {
			p.End = now
		}
	}
}

// Message returns the newest message, nil before the first.
func (r *Run) Message() *message.Message {
	if len(r.Messages) == 0 {
		return nil
	}
	return r.Messages[len(r.Messages)-1]
}
