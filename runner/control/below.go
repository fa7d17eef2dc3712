package control

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// below is what the runs below a run wait for. The object of the run at the top shows it:
// these have none of their own.
type below struct {
	// open are the calls that wait for a person, by the run that waits; a run that works
	// has none.
	open map[string]map[string]bool
}

// note takes an event of a run below, and reports whether the questions may have changed.
func (b *below) note(e event.Event) (changed bool) {
	if b.open == nil {
		b.open = map[string]map[string]bool{}
	}
	calls := b.open[e.Run]
	if calls == nil {
		calls = map[string]bool{}
		b.open[e.Run] = calls
	}
	switch d := e.Data.(type) {
	case event.ApprovalRequested, event.QuestionAsked:
		calls[e.Call] = true
		return true
	case event.ApprovalDecided, event.QuestionAnswered:
		delete(calls, e.Call)
		return true
	case event.PolicyDecision:
		if d.Action != message.Deny || !calls[e.Call] {
			return false
		}
		delete(calls, e.Call)
		return true
	case event.ToolCall, event.ToolResult, event.ToolError:
		// What became of an approval is known with it.
		delete(calls, e.Call)
		return true
	case event.RunFinished:
		delete(b.open, e.Run)
		return true
	}
	return false
}

// pending is how many calls wait.
func (b *below) pending() (n int32) {
	for _, calls := range b.open {
		n += int32(len(calls)) //nolint:gosec // a run has fewer
	}
	return n
}

// rests reports whether there are runs below, and all of them wait.
func (b *below) rests() bool {
	for _, calls := range b.open {
		if len(calls) == 0 {
			return false
		}
	}
	return len(b.open) > 0
}

// watchBelow notes the events of runs below, and notifies of those that change the status
// of the run at the top.
func (w *Workers) watchBelow(i *item) func(event.Event) {
	return func(e event.Event) {
		w.metrics.event(e)
		i.mu.Lock()
		changed := i.below.note(e)
		rests := i.rests()
		i.mu.Unlock()
		w.rest(i, rests)
		if changed {
			w.notify(i.work)
		}
	}
}

// rests is what the run waits for. The mutex of the item is held.
func (i *item) rests() restKind {
	if i.view == nil {
		return restNone
	}
	return i.restsWith(i.view)
}

// restsWith is rests of a fold of the run.
func (i *item) restsWith(v *view.Run) restKind {
	r := restOf(v)
	if r == restNone && i.below.rests() {
		return restCall // it runs, and waits for a run below
	}
	return r
}
