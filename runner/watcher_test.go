package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/runs"
)

func TestBlockedReaderDoesNotStopARun(t *testing.T) {
	p := newPlace(t, agent("", "- say: done"), nil)
	block := make(chan struct{})
	kill := make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	watched := make(chan struct{})
	out := make(chan *Outcome)
	go func() {
		out <- p.runWith(ctx, t, func(o *RunOptions) {
			o.Kill = kill
			o.Events = func(e event.Event) {
				if e.Seq == 1 {
					close(watched)
				}
				<-block
			}
		})
	}()
	<-watched
	// The run is over when its journal is whole, whoever reads it or not.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; <-tick.C {
		ids, err := runs.IDs(p.state)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(p.state, "runs", ids[0], "head.json"))
		done = err == nil
		if t.Context().Err() != nil {
			t.Fatal("the run does not end")
		}
	}
	close(kill)
	if o := <-out; o.Unseen == 0 || o.Run.Finished == nil || o.Run.Finished.Reason != "Completed" {
		t.Errorf("%d events are unseen, the end is %+v", o.Unseen, o.Run.Finished)
	}
	close(block)
}
