package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// talk are three steps, each with a call that has a result.
func talk() []event.Event {
	events := conversation[:1:1]
	for i, m := range []string{"m1", "m2", "m3"} {
		call := "c" + m
		events = append(events, []event.Event{
			{Data: event.StepStart{Step: i + 1}},
			{Message: m, Part: "ps" + m, Data: event.ModelRequest{Step: i + 1}},
			{Message: m, Part: "p" + m, Call: call, Data: event.ToolInputStart{Tool: "read"}},
			{Message: m, Data: event.ModelResponse{}},
			{Message: m, Call: call, Data: event.ToolCall{Tool: "read"}},
			{Message: m, Call: call, Data: event.ToolResult{ToolResult: message.ToolResult{Text: "a long text"}}},
		}...)
	}
	return events
}

// summary asks for one and gets it.
func summary(id, tail, text string) []event.Event {
	cost := message.Cost(3)
	return []event.Event{
		{Message: id, Data: event.ModelRequest{Step: 3, Summary: true}},
		{Message: id, Part: "p" + id, Data: event.ContextCompaction{
			Compaction: message.Compaction{Auto: true, TailStart: tail}, Summary: text,
			Model: message.ModelRef{Name: "small"}, Tokens: message.Usage{Output: 4}, Cost: &cost,
		}},
	}
}

// told are the ids of the messages a model is sent; those of summaries with their text.
func told(r *Run) (ids []string) {
	for _, m := range r.History() {
		id := m.ID
		if m.Summary {
			id += ": " + m.Text()
		}
		ids = append(ids, id)
	}
	return ids
}

func TestHistory(t *testing.T) {
	join := func(parts ...[]event.Event) (all []event.Event) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	crash := []event.Event{{Data: event.RunResumed{Attempt: 2}}}
	open := []event.Event{{Message: "s9", Data: event.ModelRequest{Step: 3, Summary: true}}}
	user := []event.Event{{Message: "u2", Part: "pu2", Data: event.UserMessage{Text: "more"}}}
	next := []event.Event{{Message: "m4", Part: "p4", Data: event.ModelRequest{Step: 4}}}
	one, two := summaryIntro+"one", summaryIntro+"two"
	for name, c := range map[string]struct {
		reason string
		events []event.Event
		want   []string
	}{
		"all":              {"everything is sent", talk(), []string{"u", "m1", "m2", "m3"}},
		"open":             {"what is being written is not", join(talk(), next), []string{"u", "m1", "m2", "m3"}},
		"void":             {"what never was answered is not", join(talk(), next, crash, user), []string{"u", "m1", "m2", "m3", "u2"}},
		"summary":          {"a summary stands between the first prompt and the tail", join(talk(), summary("s", "m3", "one")), []string{"u", "s: " + one, "m3"}},
		"no tail":          {"there may be no tail", join(talk(), summary("s", "", "one")), []string{"u", "s: " + one}},
		"tail is all":      {"the first prompt is sent once", join(talk(), summary("s", "u", "one")), []string{"u", "s: " + one, "m1", "m2", "m3"}},
		"goes on":          {"what comes after it is sent", join(talk(), summary("s", "m3", "one"), user), []string{"u", "s: " + one, "m3", "u2"}},
		"goes on, no tail": {"also without a tail", join(talk(), summary("s", "", "one"), user), []string{"u", "s: " + one, "u2"}},
		"twice":            {"a second one replaces the first", join(talk(), summary("s", "m2", "one"), user, summary("t", "m3", "two")), []string{"u", "t: " + two, "m3", "u2"}},
		"tail before":      {"also when its tail begins before the first", join(talk(), summary("s", "m2", "one"), summary("t", "m2", "two"), user), []string{"u", "t: " + two, "m2", "m3", "u2"}},
		"being written":    {"a summary counts once it is there", join(talk(), open), []string{"u", "m1", "m2", "m3"}},
		"crash":            {"one that a crash cut off never was", join(talk(), open, crash, user), []string{"u", "m1", "m2", "m3", "u2"}},
		"crash, second":    {"the one before it still counts", join(talk(), summary("s", "m3", "one"), open, crash), []string{"u", "s: " + one, "m3"}},
		"given up":         {"one that failed never was", join(talk(), open, next), []string{"u", "m1", "m2", "m3"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := fold(t, c.events...)
			if diff := cmp.Diff(c.want, told(r)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if err := r.legal(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSummaryIsNoAnswer(t *testing.T) {
	r := fold(t, append(talk(), summary("s", "m3", "one")...)...)
	s := r.Message()
	if s.Role != message.RoleAssistant || !s.Summary || s.Text() != "one" || s.Finish != message.FinishStop || s.Model.Name != "small" {
		t.Errorf("the message of the summary is %+v", s)
	}
	ids := map[string]bool{}
	for _, p := range s.Parts {
		if ids[p.ID] || p.Start == 0 || p.End == 0 {
			t.Errorf("part %+v", p)
		}
		ids[p.ID] = true
	}
	if r.Steps != 3 || r.Tokens.Output != 4 || r.Cost != 3 {
		t.Errorf("%d steps, %d tokens, cost %s: a summary is no step, but it counts", r.Steps, r.Tokens.Output, r.Cost)
	}
	sent := r.History()[1]
	if sent.Role != message.RoleUser || len(sent.Parts) != 1 || !sent.Parts[0].Synthetic || sent.Parts[0].Start == 0 {
		t.Errorf("a model is sent %+v", sent)
	}
	resumed := fold(t, append(append(talk(), summary("s", "m3", "one")...), event.Event{Data: event.RunResumed{Attempt: 2}})...)
	if resumed.Steps != 3 {
		t.Errorf("after a resume there are %d steps", resumed.Steps)
	}
}

func TestPrune(t *testing.T) {
	prune := event.Event{Data: event.ContextPrune{Calls: []event.PrunedCall{{Call: "cm1", Blob: "b1"}, {Call: "cm2", Blob: "b2"}}}}
	events := talk()
	full := event.Event{Message: "m2", Call: "cm2", Data: event.ToolResult{ToolResult: message.ToolResult{Text: "cut", Blob: "whole"}}}
	for i, e := range events {
		if e.Type() == event.TypeToolResult && e.Call == "cm2" {
			events[i] = full
		}
	}
	r := fold(t, append(events, prune)...)
	now := r.LastTime.UnixMilli()
	if c := r.Call("cm1"); c.Compacted != now || c.Result.Blob != "b1" || c.Result.Text != "a long text" || c.State != message.StateCompleted {
		t.Errorf("call %+v, result %+v", c, c.Result)
	}
	if c := r.Call("cm2"); c.Compacted != now || c.Result.Blob != "whole" {
		t.Errorf("the blob of the whole output was replaced by %q", c.Result.Blob)
	}
	if c := r.Call("cm3"); c.Compacted != 0 {
		t.Error("a call was pruned that was not named")
	}
	if full.Data.(event.ToolResult).Blob != "whole" {
		t.Error("the event has changed")
	}
	r = fold(t, events...)
	half := event.ContextPrune{Calls: []event.PrunedCall{{Call: "cm1"}, {Call: "cx"}}}
	if err := r.Apply(event.Event{Data: half}); err == nil || r.Call("cm1").Compacted != 0 {
		t.Errorf("error %v: a refused event changes nothing", err)
	}
}

func TestCompactionIsRefused(t *testing.T) {
	r := fold(t, append(talk(), summary("s", "m3", "one")[0])...)
	for reason, e := range map[string]event.Event{
		"a summary is not an answer":          {Message: "s", Data: event.ModelResponse{}},
		"a tail begins with a message":        {Message: "s", Data: event.ContextCompaction{Compaction: message.Compaction{TailStart: "mx"}}},
		"an answer that is complete is none":  {Message: "m3", Data: event.ContextCompaction{}},
		"a message that is not there is none": {Message: "mx", Data: event.ContextCompaction{}},
	} {
		if err := r.Apply(e); err == nil {
			t.Errorf("%s, but the event was taken", reason)
		}
	}
}
