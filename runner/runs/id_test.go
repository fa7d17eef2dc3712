package runs

import (
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/inbox"
)

func TestIdsOfMessagesAreInTheOrderOfTheirTimes(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 999_000_000, time.UTC)
	last := ""
	for range 3000 {
		id := newID("in", now)
		if id <= last || inbox.Check(message.Incoming{ID: id, Text: "x"}) != nil {
			t.Fatalf("%s comes after %s", id, last)
		}
		last, now = id, now.Add(700*time.Nanosecond)
	}
	if a, b := newID("in", now), newID("in", now); a == b {
		t.Errorf("two messages of one moment are both %s", a)
	}
}
