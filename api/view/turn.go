package view

import (
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Turn is one prompt of a conversation, and what came of it.
type Turn struct {
	// Number counts from 1.
	Number int
	Agent  string
	Model  message.ModelRef
	Prompt string
	// Message is the id of the message with the prompt.
	Message string
	// Changed says what was declared otherwise than in the turn before.
	Changed []string

	StartTime, EndTime time.Time
	// Finished is the end of the turn; nil until then.
	Finished *event.RunFinished
	// Tokens to Uncounted are those of the answers of the turn, as the Run has them of all.
	Tokens, Estimated   message.Usage
	Cost                message.Cost
	Unpriced, Uncounted bool

	// first is the place of its prompt among the messages; steps and worked are those of
	// the turns before.
	first  int
	steps  int
	worked time.Duration
}

// turn begins a turn with the newest message, which is its prompt.
func (r *Run) turn(e event.Event, d *event.Turn) {
	s := &r.Started
	r.asked.System, r.asked.Tools = s.Plan, s.Tools
	r.attach(e, s.Files)
	r.expand(e, s.Expansions)
	t := &Turn{Number: len(r.Turns) + 1, Agent: s.Agent, Model: s.Model, Prompt: s.Prompt, Message: e.Message, StartTime: e.Time, first: len(r.Messages) - 1}
	if d != nil {
		t.Changed, t.steps, t.worked = d.Changed, r.Steps, r.worked
	}
	r.Turns = append(r.Turns, t)
}

// goOnWith begins another turn of a run that had ended.
func (r *Run) goOnWith(e event.Event, d event.RunResumed) error {
	r.Started = r.Started.InTurn(d)
	if err := r.user(e, d.Turn.Prompt, false, d.Turn.Origin); err != nil {
		return err
	}
	r.reverts = nil   // which are permanent now
	r.Described = nil // its programs describe themselves again
	if d.Turn.Forgets {
		r.Remembered = nil
	}
	if d.Turn.Fresh {
		r.Changes, r.Snapshot, r.FilesState, r.FilesUnknown, r.Applied, r.AppliedLater, r.InSource = event.WorkspacePatch{}, "", "", false, nil, 0, false
	}
	r.turn(e, d.Turn)
	return nil
}

// count adds what a child has used.
func (t *Turn) count(child *message.ChildRun) {
	t.Tokens = t.Tokens.Add(child.Tokens)
	if child.Cost != nil {
		t.Cost = t.Cost.Add(*child.Cost)
	}
	t.Unpriced = t.Unpriced || child.Unpriced
	if child.Estimated != nil {
		t.Uncounted, t.Estimated = true, t.Estimated.Add(*child.Estimated)
	}
}

// Turn is the newest turn; nil before the first.
func (r *Run) Turn() *Turn {
	if len(r.Turns) == 0 {
		return nil
	}
	return r.Turns[len(r.Turns)-1]
}

// PlaceOf is the place of the prompt of a turn among the messages.
func (r *Run) PlaceOf(t *Turn) int { return t.first }

// Said are the messages of the newest turn, its prompt first.
func (r *Run) Said() []*message.Message {
	if t := r.Turn(); t != nil {
		return r.Messages[min(t.first, len(r.Messages)):]
	}
	return r.Messages
}

// Begins reports whether a message is the prompt of a turn.
func (r *Run) Begins(m *message.Message) bool {
	for _, t := range r.Turns {
		if t.first < len(r.Messages) && r.Messages[t.first] == m {
			return true
		}
	}
	return false
}

// TurnSteps are the steps of the newest turn.
func (r *Run) TurnSteps() int {
	if t := r.Turn(); t != nil {
		return r.Steps - t.steps
	}
	return r.Steps
}

// TurnWorked is Worked for the newest turn alone.
func (r *Run) TurnWorked(now time.Time) time.Duration {
	if t := r.Turn(); t != nil {
		return r.Worked(now) - t.worked
	}
	return r.Worked(now)
}

// TurnResult is one turn in a Result.
type TurnResult struct {
	// Number counts from 1.
	Number int    `json:"number"`
	Agent  string `json:"agent"`
	// Model is its name in the manifests.
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// Phase, Reason, ExitCode and Output are those with which the turn ended; Phase is
	// Running until then.
	Phase    string `json:"phase"`
	Reason   string `json:"reason"`
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
	Steps    int    `json:"steps"`
	Tokens   Tokens `json:"tokens"`
	// Cost is null where it is not known.
	Cost *message.Cost `json:"cost"`
	// Changed says what was declared otherwise than in the turn before.
	Changed []string `json:"changed"`
}

// turnResults are those of a conversation; nil for a run of one turn.
func (r *Run) turnResults() []TurnResult {
	if len(r.Turns) < 2 {
		return nil
	}
	all := make([]TurnResult, len(r.Turns))
	for i, t := range r.Turns {
		end := r.Steps
		if i+1 < len(r.Turns) {
			end = r.Turns[i+1].steps
		}
		out := TurnResult{Number: t.Number, Agent: t.Agent, Model: t.Model.Name, Prompt: t.Prompt, Phase: Running, Steps: end - t.steps, Tokens: Tokens(t.Tokens), Changed: append([]string{}, t.Changed...)}
		if !t.Unpriced && !t.Uncounted {
			cost := t.Cost
			out.Cost = &cost
		}
		if f := t.Finished; f != nil {
			out.Phase, out.Reason, out.ExitCode, out.Output = f.Phase, f.Reason, f.ExitCode, f.Output
		}
		all[i] = out
	}
	return all
}

// declare has a fork go on with what it declares otherwise.
func (r *Run) declare(d event.RunResumed) {
	r.Started, r.Described, r.Remembered = r.Started.InTurn(d), nil, nil
	if t := r.Turn(); t != nil {
		t.Agent, t.Model, t.Changed = d.Fork.Agent, d.Fork.Model, d.Fork.Changed
	}
}
