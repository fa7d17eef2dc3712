package agenttest

import (
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

func TestEventsOfRunsBelowAreKeptApart(t *testing.T) {
	var w witness
	for _, run := range []string{"one", "two"} {
		w.seeBelow(event.Event{Seq: 1, Run: run, Data: event.RunStarted{Agent: "agent " + run}})
	}
	w.seeBelow(event.Event{Seq: 2, Run: "one", Data: event.TextDelta{}})
	w.seeBelow(event.Event{Seq: 3, Run: "one", Data: event.RunFinished{Phase: view.Succeeded, Output: "x"}})
	w.see(event.Event{Seq: 1, Data: event.TextDelta{}})
	w.see(event.Event{Seq: 2, Data: event.StepStart{Step: 1}})
	s := w.subject(&view.Run{}, "")
	if len(s.Events) != 1 || len(s.Below) != 2 || s.Below[0].Run.Started.Agent != "agent one" || s.Below[0].Run.Finished == nil || s.Below[1].Run.Finished != nil {
		t.Errorf("got %+v", s)
	}
}
