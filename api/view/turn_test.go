package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// ended is talk with an end.
func ended(phase string) []event.Event {
	return append(talk(), event.Event{Data: event.RunFinished{Phase: phase, Reason: "Completed", Output: "one", Steps: 3}})
}

// next begins a turn.
func next(number int, change func(*event.Turn)) event.Event {
	t := &event.Turn{Number: number, Agent: "b", Model: message.ModelRef{Name: "n"}, Prompt: "more", Plan: "plan2", Tools: []string{"bash"}, Changed: []string{"the agent was a and is b"}}
	if change != nil {
		change(t)
	}
	return event.Event{Message: "u2", Part: "pu2", Data: event.RunResumed{Attempt: number, Isolation: "Sandbox", Version: "2", Turn: t}}
}

// reply is an answer of a turn with tokens and a cost.
func reply(id string, step int, cost *message.Cost) []event.Event {
	return []event.Event{
		{Data: event.StepStart{Step: step}},
		{Message: id, Part: "ps" + id, Data: event.ModelRequest{Step: step}},
		{Message: id, Data: event.ModelResponse{Tokens: message.Usage{Input: 5}, Cost: cost}},
	}
}

func TestATurnCountsForItself(t *testing.T) {
	price := message.Cost(7)
	r := fold(t, append(append(ended(Succeeded), next(2, nil)), reply("m4", 4, &price)...)...)
	if r.Finished != nil || r.Phase != Running || r.Started.Agent != "b" || r.Started.Plan != "plan2" || r.Started.Version != "2" || r.Started.Workspace.Dir != "/w" {
		t.Errorf("phase %s, started %+v", r.Phase, r.Started)
	}
	now := r.Turn()
	if r.Steps != 4 || r.TurnSteps() != 1 || now.Tokens.Input != 5 || now.Cost != price || now.Unpriced || !r.Unpriced {
		t.Errorf("%d steps, %d of the turn, turn %+v", r.Steps, r.TurnSteps(), now)
	}
	if said := r.Said(); len(said) != 2 || said[0].ID != "u2" || said[0].Text() != "more" || said[0].Agent != "b" || said[0].System != "plan2" {
		t.Errorf("the turn has %d messages, the first %+v", len(said), said[0])
	}
	if !r.Begins(r.Messages[0]) || !r.Begins(r.Said()[0]) || r.Begins(r.Messages[1]) {
		t.Error("the prompts begin the turns, and nothing else does")
	}
	if r.Messages[1].Agent != "a" {
		t.Errorf("an earlier answer is of agent %q", r.Messages[1].Agent)
	}
	got := r.Result("/j").Turns
	if len(got) != 2 || got[0].Steps != 3 || got[0].Output != "one" || got[0].Cost != nil || got[1].Steps != 1 || got[1].Phase != Running || got[1].Cost.String() != price.String() {
		t.Errorf("the result has %+v", got)
	}
	if diff := cmp.Diff([]string{"the agent was a and is b"}, got[1].Changed); diff != "" {
		t.Error(diff)
	}
	if r.Result("/j").Agent != "b" || len(fold(t, ended(Succeeded)...).Result("/j").Turns) != 0 {
		t.Error("a run of one turn has no turns, and a run is that of its newest agent")
	}
}

func TestATurnKeepsWhatItDoesNotForget(t *testing.T) {
	events := append(
		talk(),
		event.Event{Data: event.WorkspaceSnapshot{Snapshot: "s"}},
		event.Event{Data: event.WorkspaceSnapshot{Snapshot: "s1", Step: 1, Kept: 5}},
		event.Event{Data: event.WorkspaceSnapshot{Snapshot: "s2", Step: 2, Kept: 7}},
		event.Event{Data: event.WorkspacePatch{Change: "c", Files: []event.FileChange{{Path: "x"}}}},
		event.Event{Data: event.RunFinished{Phase: Succeeded}},
		event.Event{Data: event.WorkspaceApplied{By: "jane", Change: "c"}},
	)
	r := fold(t, events...)
	r.Remembered = []message.Grant{{Permission: "bash"}}
	if !r.InSource || r.AppliedLater != 1 {
		t.Fatal("the change is in the source")
	}
	at := next(2, nil)
	at.Time = r.LastTime.Add(time.Second)
	if err := r.Apply(at); err != nil {
		t.Fatal(err)
	}
	if r.Snapshot != "s" || r.Changes.Change != "c" || len(r.Remembered) != 1 {
		t.Errorf("the turn has lost files %q, change %q or approvals %v", r.Snapshot, r.Changes.Change, r.Remembered)
	}
	r = fold(t, events...)
	r.Remembered = []message.Grant{{Permission: "bash"}}
	at = next(2, func(t *event.Turn) { t.Fresh, t.Forgets = true, true })
	at.Time = r.LastTime.Add(time.Second)
	if err := r.Apply(at); err != nil {
		t.Fatal(err)
	}
	if r.Snapshot != "" || r.Changes.Change != "" || len(r.Remembered) != 0 || r.InSource || r.AppliedLater != 0 {
		t.Errorf("a fresh turn has files %q, change %q, approvals %v", r.Snapshot, r.Changes.Change, r.Remembered)
	}
	if r.FilesKept != 12 {
		t.Errorf("%d bytes are kept in the run, want 12: a turn frees none", r.FilesKept)
	}
}

func TestATurnThatCannotBeginIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		before []event.Event
		turn   event.Event
	}{
		"running":   {"the turn before has not ended", talk(), next(2, nil)},
		"suspended": {"a suspended turn is resumed", ended(Suspended), next(2, nil)},
		"number":    {"turns follow each other", ended(Succeeded), next(3, nil)},
		"no turn":   {"a run that has ended is not resumed without a prompt", ended(Succeeded), event.Event{Data: event.RunResumed{Attempt: 2}}},
		"message":   {"ids are unique", ended(Succeeded), event.Event{Message: "m1", Data: event.RunResumed{Attempt: 2, Turn: &event.Turn{Number: 2}}}},
	} {
		r := fold(t, c.before...)
		if err := r.Apply(c.turn); err == nil || len(r.Turns) != 1 {
			t.Errorf("%s: %s, but it was taken", name, c.reason)
		}
	}
}

// A summary leaves the prompt of the turn that it was made in: it is the task.
func TestASummaryKeepsThePromptOfTheTurn(t *testing.T) {
	events := append(append(append(ended(Succeeded), next(2, nil)), reply("m4", 4, nil)...), summary("s", "m4", "one")...)
	r := fold(t, events...)
	if diff := cmp.Diff([]string{"u", "s: " + summaryIntro + "one", "u2", "m4"}, told(r)); diff != "" {
		t.Error(diff)
	}
}

// A turn that was killed and resumed is one turn, and keeps what it has used.
func TestAResumedTurnGoesOn(t *testing.T) {
	price := message.Cost(7)
	events := append(append(ended(Succeeded), next(2, nil)), reply("m4", 4, &price)...)
	r := fold(t, append(events, event.Event{Data: event.RunResumed{Attempt: 3}}, event.Event{Data: event.RunFinished{Phase: Failed, Reason: "MaxSteps"}})...)
	if len(r.Turns) != 2 || r.TurnSteps() != 1 || r.Turn().Cost != price || r.Turn().Finished.Reason != "MaxSteps" || r.Turns[0].Finished.Reason != "Completed" {
		t.Errorf("%d turns, %d steps, %+v", len(r.Turns), r.TurnSteps(), r.Turn())
	}
}
