package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
)

// A recording of a version that did not write a member down is compared without it; what a
// recording has is compared.
func TestOlderEndsAreComparedWithoutNewMembers(t *testing.T) {
	now := event.RunFinished{Output: "{}", Structured: true, Evidence: []event.Evidence{{Name: "tested", Met: true}}}
	for name, c := range map[string]struct{ recorded, want event.RunFinished }{
		"older":             {event.RunFinished{Output: "{}"}, event.RunFinished{Output: "{}"}},
		"the same":          {now, now},
		"evidence was less": {event.RunFinished{Evidence: []event.Evidence{{Name: "tested"}}}, event.RunFinished{Output: "{}", Evidence: now.Evidence}},
	} {
		if diff := cmp.Diff(event.Payload(c.want), unadded(now, c.recorded)); diff != "" {
			t.Errorf("%s (want, got): %s", name, diff)
		}
	}
}
