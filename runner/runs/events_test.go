package runs

import (
	"errors"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// TestEventsOfARunThatGoesOnAreFollowed: one reads what another process writes,
// from any place, to the end.
func TestEventsOfARunThatGoesOnAreFollowed(t *testing.T) {
	k := begun(t, t.TempDir(), "worker-1")
	told := func(state string, follow bool, from int64, seen func(event.Event)) *Told {
		t.Helper()
		next := max(1, from)
		end, err := Events(t.Context(), EventsOptions{Ref: "@latest", State: state, From: from, Follow: follow}, func(e event.Event) error {
			if e.Seq != next {
				t.Errorf("event %d where %d is next", e.Seq, next)
			}
			next++
			if seen != nil {
				seen(e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	if end := told(k.state, false, 0, nil); end.Phase != view.Running || end.Finished != nil {
		t.Errorf("what there is now: %+v", end)
	}
	if end := told(killed(t, k.state), true, 3, nil); end.Phase != Interrupted {
		t.Errorf("nobody will go on with a run that was killed: %+v", end)
	}
	var last event.Event
	end := told(k.state, true, 2, func(e event.Event) {
		if last = e; e.Type() == event.TypeApprovalRequested {
			k.end(view.Succeeded, "Completed", 0)
		}
	})
	if end.Phase != view.Succeeded || end.Run != k.id || end.Finished.Output != "done" {
		t.Errorf("at the end: %+v", end)
	}
	if last.Type() != event.TypeRunFinished {
		t.Errorf("the last event sent is %d %s", last.Seq, last.Type())
	}
}

func TestEventsEndWithWhoReadsThem(t *testing.T) {
	k := begun(t, t.TempDir(), "worker-1")
	full := errors.New("the disk is full")
	if _, err := Events(t.Context(), EventsOptions{Ref: "@latest", State: k.state, Follow: true}, func(event.Event) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	_, err := Events(t.Context(), EventsOptions{Ref: "nobody", State: k.state}, nil)
	if _, ok := errors.AsType[*reason.UsageError](err); !ok {
		t.Errorf("got %v", err)
	}
}
