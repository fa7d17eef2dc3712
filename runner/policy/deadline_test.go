package policy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// A decision that waits for a file system that does not answer ends with the run,
// and denies at its own limit.
func TestADecisionThatDoesNotEndIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := engine(t, "default: allow\nrules: [{name: late, when: \"now > timestamp('1990-01-01T00:00:00Z')\", action: ask}]")
		e.context.Now = func() time.Time { <-release; return time.Now() }
		d, err := e.Decide(t.Context(), bash("ls"))
		if err != nil || d.Action != message.Deny || d.Rule != "default/error" {
			t.Errorf("without an end: %+v, %v", d, err)
		}
		stop := errors.New("stopped by interrupt")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(stop) })
		begun := time.Now()
		if _, err := e.Decide(ctx, bash("ls")); !errors.Is(err, stop) {
			t.Errorf("stopped: %v", err)
		}
		if took := time.Since(begun); took > 2*time.Second+graceTime {
			t.Errorf("it took %s", took)
		}
		close(release)
		if d := decide(t, e, bash("ls")); d.Action != message.Ask {
			t.Errorf("afterwards: %+v", d)
		}
	})
}
