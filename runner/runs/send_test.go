package runs

import (
	"errors"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
)

func TestAMessageIsForWhoGoesOn(t *testing.T) {
	k := begun(t, t.TempDir(), "worker-1")
	if err := inbox.New(k.id, journal.Dir(k.state, k.id)).Open(); err != nil { // as a run does that begins to listen
		t.Fatal(err)
	}
	send := func(state string) (*Sent, error) {
		return Send(t.Context(), SendOptions{Ref: k.id, State: state, Text: "Hurry.", By: "jane"})
	}
	if s, err := send(k.state); err != nil || s.Run != k.id || s.State != view.Running {
		t.Errorf("while it continues: %+v, %v", s, err)
	}
	if s, err := send(killed(t, k.state)); err != nil || s.State != Interrupted {
		t.Errorf("killed: %+v, %v", s, err)
	}
	k.end(view.Succeeded, "Completed", 0)
	_, err := send(k.state)
	if _, ok := errors.AsType[*reason.UsageError](err); !ok || !errors.Is(err, ErrEnded) {
		t.Errorf("ended: %v", err)
	}
}
