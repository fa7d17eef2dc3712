package runner

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// replaysAsItWas holds the replay of a recorded run against the run: every run of
// these tests that came to an end goes through it.
func replaysAsItWas(t *testing.T, out *Outcome, file string) {
	t.Helper()
	f := out.Run.Finished
	asked := false
	for _, m := range out.Run.Messages {
		asked = asked || m.Role == message.RoleAssistant
	}
	if f == nil || f.Phase == view.Suspended || !asked {
		if out.Unrecorded == nil {
			t.Errorf("a run that never ended (%+v), or never asked, was recorded", f)
		}
		return
	}
	if out.Unrecorded != nil {
		t.Errorf("the run was not recorded: %v", out.Unrecorded)
		return
	}
	var events []event.Event
	again, err := Replay(t.Context(), ReplayOptions{File: file, Events: func(e event.Event) { events = append(events, e) }})
	if err != nil {
		t.Errorf("no replay came about: %v", err)
		return
	}
	if d := again.Divergence; d != nil {
		t.Errorf("the replay goes another way: %v", d)
	}
	want, got := out.Result(), again.Result()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(view.Result{}, "Journal")); diff != "" {
		t.Errorf("the replay has another result (-run +replay):\n%s", diff)
	}
	if out.Run.Attempt > 1 {
		return // its journal tells of the interruption as well
	}
	var recorded []event.Event
	for e, err := range journal.Read(context.Background(), out.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e.Prev = ""
		recorded = append(recorded, e)
	}
	if diff := cmp.Diff(recorded, events); diff != "" {
		t.Errorf("the replay tells other events (-run +replay):\n%s", diff)
	}
}
