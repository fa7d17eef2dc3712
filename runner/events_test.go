package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/misuse"
)

// TestEventsOfARunThatGoesOnAreFollowed: one reads what another process writes,
// from any place, to the end.
func TestEventsOfARunThatGoesOnAreFollowed(t *testing.T) {
	p := asking(t, "Wait", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", nil)
	asked := make(chan struct{})
	outcome := make(chan *Outcome, 1)
	go func() {
		out, err := Run(context.WithoutCancel(t.Context()), p.options(func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, is := e.Data.(event.ApprovalRequested); is {
					close(asked)
				}
			}
		}))
		if err != nil {
			t.Error(err)
		}
		outcome <- out
	}()
	<-asked
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
	if end := told(p.state, false, 0, nil); end.Phase != view.Running || end.Finished != nil {
		t.Errorf("what there is now: %+v", end)
	}
	killed := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(killed, os.DirFS(p.state)); err != nil {
		t.Fatal(err)
	}
	if end := told(killed, true, 3, nil); end.Phase != RunInterrupted {
		t.Errorf("nobody will go on with a run that was killed: %+v", end)
	}
	var last event.Event
	end := told(p.state, true, 2, func(e event.Event) {
		if last = e; e.Type() == event.TypeApprovalRequested {
			p.answer(t, "@latest", nil)
		}
	})
	out := <-outcome
	if end.Phase != view.Succeeded || end.Run != out.Run.ID || end.Journal != out.Journal || end.Finished.Output != "done\n" && end.Finished.Output != "done" {
		t.Errorf("at the end: %+v", end)
	}
	if last.Type() != event.TypeRunFinished || last.Seq != out.Run.LastSeq {
		t.Errorf("the last event told is %d %s, want %d", last.Seq, last.Type(), out.Run.LastSeq)
	}
}

func TestEventsEndWithWhoReadsThem(t *testing.T) {
	p := asking(t, "Deny", "- say: done\n", nil)
	p.run(t)
	full := errors.New("the disk is full")
	if _, err := Events(t.Context(), EventsOptions{Ref: "@latest", State: p.state, Follow: true}, func(event.Event) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	_, err := Events(t.Context(), EventsOptions{Ref: "nobody", State: p.state}, nil)
	if _, ok := errors.AsType[*misuse.Error](err); !ok {
		t.Errorf("got %v", err)
	}
}
