package replay

import (
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/cassette"
)

// tape compares the events of the loop with the recording. Concurrent calls may come in
// another order than recorded: each call is a lane of its own, and so are the events
// without a call. Events are recorded in the order of the recording.
type tape struct {
	entries []entry
	lanes   map[string][]int
	// emittedTo is the number of recorded entries, doneTo of those that the loop has passed.
	emittedTo, doneTo int
	// stop is the place after which the recorded run was stopped; -1 is nowhere.
	stop int
}

// entry is one recorded event.
type entry struct {
	cassette.Entry
	step int
	// made events come from the loop; the others are copied from the recording.
	made bool
	done bool
	// sure marks an event that is about to happen and that no other has to wait for.
	sure bool
}

func (t *tape) load(recorded []cassette.Entry) {
	t.lanes = map[string][]int{}
	step := 0
	for i, e := range recorded {
		if s, ok := e.Data.(event.StepStart); ok {
			step = s.Step
		}
		made := !e.Earlier && made(e, recorded[i+1:])
		t.entries = append(t.entries, entry{Entry: e, step: step, made: made, done: e.Earlier})
		if made {
			t.lanes[e.Call] = append(t.lanes[e.Call], i)
		}
	}
}

// made reports whether the loop itself makes such an event. The others come from its
// environment: the files, the network, the process.
func made(e cassette.Entry, after []cassette.Entry) bool {
	if e.Past {
		return false
	}
	switch d := e.Data.(type) {
	case event.RunStarted, event.RunResumed, event.RunFinished, event.ToolsDescribed, event.WorkspaceSnapshot, event.WorkspacePatch, event.WorkspaceApplied, event.RunReverted, event.PublishItem,
		event.EgressConnection, event.SecretResolved, event.Unknown, event.ToolProgress, event.QuestionAsked, event.QuestionAnswered:
		return false
	case event.Warning:
		if e.Call == "" && e.Message == "" {
			return strings.HasPrefix(d.Message, cassette.Uncounted)
		}
		return !cassette.Renamed(e, after)
	}
	return true
}

// next returns the place of the next event of a lane, or -1.
func (t *tape) next(lane string) int {
	if left := t.lanes[lane]; len(left) > 0 {
		return left[0]
	}
	return -1
}

// pass marks the next event of a lane as done.
func (t *tape) pass(lane string) {
	t.entries[t.lanes[lane][0]].done = true
	t.lanes[lane] = t.lanes[lane][1:]
	t.advance()
}

func (t *tape) advance() {
	for t.doneTo < len(t.entries) {
		if e := &t.entries[t.doneTo]; e.made && !e.done && !e.sure {
			return
		}
		t.doneTo++
	}
}

// free returns the place of the last event that does not follow from stopping the run, as
// a cancelled call does; -1 if there is none.
func (t *tape) free() int {
	for i := len(t.entries) - 1; i >= 0; i-- {
		e := &t.entries[i]
		if failed, ok := e.Data.(event.ToolError); e.made && !(ok && failed.Code == message.CodeCancelled) {
			return i
		}
	}
	return -1
}

// reached reports whether the loop has done everything before a place.
func (t *tape) reached(place int) bool { return t.doneTo >= place }

// left is the first event that the loop has not done, nil if there is none.
func (t *tape) left() *entry {
	for i := t.emittedTo; i < len(t.entries); i++ {
		if e := &t.entries[i]; e.made && !e.done {
			return e
		}
	}
	return nil
}

// due returns the events that may be recorded by now. The end is recorded when it is
// there.
func (t *tape) due() []event.Event {
	var due []event.Event
	for ; t.emittedTo < len(t.entries); t.emittedTo++ {
		e := &t.entries[t.emittedTo]
		if _, ends := e.Data.(event.RunFinished); !e.done && (e.made || ends) {
			break
		}
		due = append(due, e.Event)
	}
	return due
}
