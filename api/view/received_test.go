package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

func received(id string) event.Event {
	return event.Event{Message: "u-" + id, Part: "p-" + id, Data: event.MessageReceived{
		Incoming: message.Incoming{ID: id, Text: "more", By: "jane", PostedAt: 7},
	}}
}

// A message of a person may come after any event, and stands where it came, but
// never inside an answer or between calls and their results.
func TestAMessageStandsBetweenSteps(t *testing.T) {
	between := func(n int) bool { return n <= 2 || n >= 21 }
	for n := 1; n < len(conversation); n++ {
		r := fold(t, conversation[:n]...)
		before := len(r.Messages)
		e := received("in-1")
		e.Seq, e.Time = int64(n+1), begin.Add(time.Hour)
		err := r.Apply(e)
		if taken := err == nil; taken != between(n) {
			t.Errorf("after %d events: %v", n, err)
		}
		if err != nil {
			if len(r.Messages) != before || r.Received("in-1") {
				t.Errorf("after %d events it was refused and stands there", n)
			}
			continue
		}
		m := r.Message()
		if m.Role != message.RoleUser || m.Text() != "more" || m.Parts[0].Synthetic || !r.Received("in-1") {
			t.Errorf("after %d events: %+v", n, m)
		}
		h := r.History()
		if h[len(h)-1] != m {
			t.Errorf("after %d events a model is not told last of it", n)
		}
		e = received("in-1")
		e.Message = "other"
		if err := r.Apply(e); err == nil || !strings.Contains(err.Error(), "received before") {
			t.Errorf("twice: %v", err)
		}
	}
	ended := fold(t, conversation...)
	if err := ended.Apply(received("in-1")); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("after the end: %v", err)
	}
}

func TestTheNextAnswerIsToTheMessage(t *testing.T) {
	events := append(append([]event.Event{}, conversation[:22]...), received("in-1"),
		event.Event{Data: event.StepStart{Step: 2}},
		event.Event{Message: "m2", Part: "q", Data: event.ModelRequest{Step: 2}})
	r := fold(t, events...)
	if m := r.Message(); m.ParentID != "u-in-1" {
		t.Errorf("it answers %q", m.ParentID)
	}
}

// A summary stands for messages of people as for everything else; what it leaves
// as it was begins where it says.
func TestASummaryStandsForMessages(t *testing.T) {
	events := append(append([]event.Event{}, conversation[:22]...), received("in-1"), received("in-2"),
		event.Event{Message: "s", Part: "ps", Data: event.ModelRequest{Summary: true}},
		event.Event{Message: "s", Part: "ps", Data: event.ContextCompaction{Compaction: message.Compaction{TailStart: "u-in-2"}, Summary: "so far"}})
	var ids []string
	for _, m := range fold(t, events...).History() {
		ids = append(ids, m.ID)
	}
	if d := cmp.Diff([]string{"u", "s", "u-in-2"}, ids); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}
