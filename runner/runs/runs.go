// Package runs reads the runs of a state folder and stores answers and messages for them, for programs that do not execute these runs.
//
// A journal is authoritative: everything that is reported here has been read from one. An
// answer or a message is stored in a folder of the run until the process that executes the
// run has recorded it.
package runs

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// Unreadable is the phase of a run whose journal cannot be read.
const Unreadable = "Unreadable"

// Summary is a run in a list.
type Summary struct {
	// Name is the id of the run; other commands refer to it as run/NAME.
	Name string `json:"name"`
	// Agent of the newest turn.
	Agent string `json:"agent"`
	// Model of the newest turn, by its name in the manifests.
	Model string `json:"model"`
	// Phase is Running, Interrupted, Suspended, Succeeded, Failed, Cancelled or
	// Unreadable; Reason is one word for the cause, Message a sentence.
	Phase   string `json:"phase"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// ExitCode of the run, nil until it has ended.
	ExitCode *int `json:"exitCode"`
	// StartTime, and EndTime, which is nil until the run has ended.
	StartTime time.Time  `json:"startTime"`
	EndTime   *time.Time `json:"endTime"`
	Steps     int        `json:"steps"`
	// Tokens and Cost in US dollars; nil where a price is not known, or a provider
	// does not count tokens.
	Tokens message.Usage `json:"tokens"`
	Cost   *message.Cost `json:"cost"`
	// DurationMs is the time during which processes executed the run.
	DurationMs int64 `json:"durationMs"`
	// Waiting are the calls that wait for an approval.
	Waiting []string `json:"waiting"`
	// Parent is the run whose call has started this one; "" for any other.
	Parent string `json:"parent,omitempty"`
	// Source is the source folder of the run, Journal that of its journal.
	Source  string `json:"source"`
	Journal string `json:"journal"`
}

// List returns the runs of a state folder, the newest first. Of a run that has ended it
// reads the beginning and the end, of any other the whole journal.
func List(ctx context.Context, state string) ([]Summary, error) {
	found, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	runs := make([]Summary, 0, len(found))
	for _, f := range found {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		runs = append(runs, summary(ctx, f))
	}
	return runs, nil
}

// Get returns one run; the reference is as for View.
func Get(ctx context.Context, state, ref string) (*Summary, error) {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	s := summary(ctx, found)
	return &s, nil
}

func summary(ctx context.Context, found journal.Found) Summary {
	s := Summary{Name: found.ID, Phase: Unreadable, StartTime: found.Started, Waiting: []string{}, Journal: found.Dir}
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		started, is := e.Data.(event.RunStarted)
		if err != nil || !is {
			s.Message = "the journal does not begin as one does"
			if err != nil {
				s.Message = err.Error()
			}
			return s
		}
		s.Agent, s.Model, s.Source = started.Agent, started.Model.Name, started.Workspace.Source
		if started.Parent != nil {
			s.Parent = started.Parent.Run
		}
		break
	}
	if last, err := journal.Last(found.Dir); err == nil {
		if f, ended := last.Data.(event.RunFinished); ended && f.Phase != view.Suspended {
			s.end(&f, last.Time)
			return s
		}
	}
	v := &view.Run{}
	if err := Fold(ctx, found, v); err != nil {
		s.Message = err.Error()
		if _, end := journal.DamagedAtEnd(err); end {
			s.Reason = Damaged
		}
		return s
	}
	s.Agent, s.Model = v.Started.Agent, v.Started.Model.Name
	if v.Finished != nil && v.Finished.Phase != view.Suspended {
		s.end(v.Finished, v.EndTime)
		return s
	}
	s.goesOn(v, journal.Held(found.Dir))
	return s
}

// end takes over the event that ends the run.
func (s *Summary) end(f *event.RunFinished, at time.Time) {
	s.Phase, s.Reason, s.Message, s.ExitCode, s.EndTime = f.Phase, f.Reason, f.Message, &f.ExitCode, &at
	s.Steps, s.Tokens, s.Cost, s.DurationMs = f.Steps, f.Tokens, f.Cost, f.DurationMs
	if f.Agent != "" {
		s.Agent, s.Model = f.Agent, f.Model
	}
}

// goesOn fills in the state of a run that has not ended.
func (s *Summary) goesOn(v *view.Run, held bool) {
	s.Phase, s.Steps, s.Tokens = Interrupted, v.Steps, v.Tokens
	s.Waiting = append(s.Waiting, v.PendingApprovals...)
	switch {
	case v.Phase == view.Suspended:
		s.Phase = view.Suspended
		if v.Finished != nil {
			s.Reason, s.Message = v.Finished.Reason, v.Finished.Message
		}
	case held:
		s.Phase = view.Running
	}
	if !v.Unpriced && !v.Uncounted {
		cost := v.Cost
		s.Cost = &cost
	}
	until := v.LastTime
	if s.Phase == view.Running {
		until = time.Now()
	}
	s.DurationMs = v.Worked(until).Milliseconds()
}

// IDs returns the ids of the runs of a state folder, the newest first.
func IDs(state string) ([]string, error) {
	found, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return ids, nil
}

// Ended reports whether a run has ended, so that a resume would only report its result
// again. Only the end of its journal is read.
func Ended(state, id string) bool {
	e, err := journal.Last(journal.Dir(state, id))
	if err != nil {
		return false
	}
	f, ok := e.Data.(event.RunFinished)
	return ok && f.Phase != view.Suspended
}
