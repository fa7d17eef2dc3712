// Package view folds the events of a run into what can be seen of it.
//
// There is one fold. The loop, the terminal, the web page, reports, resume and
// replay all read a run through it, so that they cannot disagree.
package view

import (
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

// Run is a run as its events tell it. The zero value is a run without events.
type Run struct {
	ID    string
	Phase string

	// Started is the event that opened the run; Finished is the event that
	// closed it, nil while it goes on.
	Started  event.RunStarted
	Finished *event.RunFinished

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

	// Changes the run made to the files, and the blobs that hold them.
	Changes event.WorkspacePatch
	// Warnings in order.
	Warnings []string
	// PendingApprovals are the calls that wait for an answer.
	PendingApprovals []string

	// Snapshot is the blob that lists the files before the run; "" until a program runs.
	Snapshot string

	// LastSeq and LastTime are the number and the time of the last event.
	LastSeq  int64
	LastTime time.Time

	calls map[string]*message.ToolPart
	steps map[string]int // call id → step
	// writing holds the arguments of calls that the model is still writing.
	writing map[string][]byte

	// since is when the newest process took up the run, worked what earlier
	// ones spent on it.
	since  time.Time
	worked time.Duration
}

// Worked is the time that processes spent on the run until now: what lay
// between a crash, or a suspension, and the resume is not part of it.
func (r *Run) Worked(now time.Time) time.Duration { return r.worked + now.Sub(r.since) }

// Apply adds one event. An event that the rules forbid, such as a result for a
// call that has ended, changes nothing and is an error; an event of an unknown
// type only counts.
func (r *Run) Apply(e event.Event) error {
	if r.calls == nil {
		r.calls, r.steps, r.writing = map[string]*message.ToolPart{}, map[string]int{}, map[string][]byte{}
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
	switch d := e.Data.(type) {
	case event.RunStarted:
		r.start(e, d)
	case event.RunResumed:
		r.resume(e, d)
	case event.RunFinished:
		r.finish(e, d)
	case event.UserMessage:
		r.user(e, d.Text, d.Synthetic)
	case event.StepStart:
		r.Steps = d.Step
	case event.StepFinish:
		return r.finishStep(e, d)
	case event.ModelRequest:
		r.request(e, d)
	case event.ModelRetry:
		return r.voidAttempt(e, d)
	case event.ModelResponse:
		return r.respond(e, d)
	case event.ContextPrune:
		return r.prune(e, d)
	case event.ContextCompaction:
		return r.compact(e, d)
	case event.TextStart:
		return r.open(e, message.PartText)
	case event.ReasoningStart:
		return r.open(e, message.PartReasoning)
	case event.TextEnd:
		return r.close(e, d.Text)
	case event.ReasoningEnd:
		return r.close(e, d.Text)
	case event.TextDelta, event.ReasoningDelta:
		// Pieces are for watchers; the whole comes with the end of the part.
	case event.ToolInputDelta:
		r.writing[e.Call] = append(r.writing[e.Call], d.Text...)
	case event.WorkspaceSnapshot:
		r.Snapshot = d.Snapshot
		r.note(e, message.Part{Type: message.PartSnapshot, Snapshot: &message.Snapshot{Hash: d.Snapshot}})
	case event.WorkspacePatch:
		r.Changes = d
		r.note(e, message.Part{Type: message.PartPatch, Patch: patch(d)})
	case event.Warning:
		r.Warnings = append(r.Warnings, d.Message)
	default:
		return r.applyCall(e)
	}
	return nil
}

func (r *Run) start(e event.Event, d event.RunStarted) {
	r.ID, r.Phase, r.Started, r.StartTime, r.since, r.Attempt = e.Run, Running, d, e.Time, e.Time, 1
	r.user(e, d.Prompt, false)
	m := r.Message()
	m.System, m.Tools = d.Plan, d.Tools
}

// resume takes up a run: what was asked and not answered is void.
func (r *Run) resume(e event.Event, d event.RunResumed) {
	r.worked += r.LastTime.Sub(r.since)
	r.since, r.Attempt, r.Phase, r.Finished, r.EndTime = e.Time, d.Attempt, Running, nil, time.Time{}
	r.PendingApprovals = nil
	if m := r.Message(); m.Open() {
		r.void(m, e.Time)
	}
	// A step that was begun and not answered begins again.
	r.Steps = 0
	for _, m := range r.Messages {
		if m.Role == message.RoleAssistant && !m.Summary && m.Error == "" {
			r.Steps++
		}
	}
}

// finish closes the run, and the message that was being written.
func (r *Run) finish(e event.Event, d event.RunFinished) {
	r.Finished, r.Phase, r.EndTime = &d, d.Phase, e.Time
	if m := r.Message(); m.Open() {
		now := e.Time.UnixMilli()
		m.Error, m.Time.Completed = message.Aborted, now
		for i := range m.Parts {
			if p := &m.Parts[i]; p.End == 0 {
				p.End = now
			}
		}
	}
	if d.Phase != Suspended {
		r.PendingApprovals = nil
	}
}

func (r *Run) user(e event.Event, text string, synthetic bool) {
	now, model := e.Time.UnixMilli(), r.Started.Model
	r.Messages = append(r.Messages, &message.Message{
		ID: e.Message, Role: message.RoleUser, Agent: r.Started.Agent, Model: &model,
		Parts: []message.Part{{ID: e.Part, Type: message.PartText, Text: text, Synthetic: synthetic, Start: now, End: now}},
		Time:  message.Time{Created: now, Completed: now},
	})
}

// Message returns the newest message, nil before the first.
func (r *Run) Message() *message.Message {
	if len(r.Messages) == 0 {
		return nil
	}
	return r.Messages[len(r.Messages)-1]
}

func (r *Run) lastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == message.RoleUser {
			return m.ID
		}
	}
	return ""
}

func (r *Run) open(e event.Event, t message.PartType) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: t, Start: e.Time.UnixMilli()})
	return nil
}

func (r *Run) close(e event.Event, text string) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.ID == e.Part {
			p.Text, p.End = text, e.Time.UnixMilli()
			return nil
		}
	}
	return fmt.Errorf("no part %q", e.Part)
}
