package runapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/journal"
)

// TestChildrenAreStreamedWithTheirRun follows a run while a run below it begins, works and
// ends: what it does comes after its call and before the result of that, without a number
// that a reader could continue from.
func TestChildrenAreStreamedWithTheirRun(t *testing.T) {
	t.Parallel()
	for _, how := range protocols {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *Options) { o.Executes = func(string) bool { return true } })
			run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
			top := w.begin(run, 1)
			id := w.server.o.RunID(run, 1)
			top.add(text("before"))
			r, got := w.open(how, "r", "?children=true"), &received{}
			until(t, r, got, event.TypeTextDelta)
			top.call("c1")
			child := w.beginBelow("scout", id, "c1")
			child.add(event.RunStarted{Agent: "scout", Parent: &event.Parent{Run: id, Call: "c1"}}, text("within"))
			until(t, r, got, event.TypeTextDelta) // while the call runs
			child.add(finished(v1alpha1.PhaseSucceeded, 0))
			top.result("c1", child.id)
			top.add(finished(v1alpha1.PhaseSucceeded, 0))
			run.Status.Phase = v1alpha1.PhaseSucceeded
			w.say(run)
			rest := all(t, r)
			lines, below := top.lines(), child.lines()
			want := slices.Concat(lines[:2], below, lines[2:])
			if diff := cmp.Diff(want, append(got.events, rest.events...)); diff != "" {
				t.Errorf("(-journals +stream)\n%s", diff)
			}
			if end := rest.last(); end.Type != recordEnd || end.Next != int64(len(lines)+1) {
				t.Errorf("the end is %+v", end)
			}
			if got := all(t, w.open(how, "r", "")); len(got.events) != len(lines) {
				t.Errorf("without children there are %d events, want %d", len(got.events), len(lines))
			}
			// What is before the first event that is wanted is left out of the runs below, too.
			if got := all(t, w.open(how, "r", "?children=true&from=4")); len(got.events) != 1 {
				t.Errorf("from the end there are %d events: %v", len(got.events), got.events)
			}
		})
	}
}

func TestOnlyEventsOfTheRunHaveAnID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseSucceeded, "Completed", ""))
	top, id := w.begin(run, 1), w.server.o.RunID(run, 1)
	top.call("c1")
	child := w.beginBelow("scout", id, "c1")
	child.add(event.RunStarted{Agent: "scout", Parent: &event.Parent{Run: id, Call: "c1"}}, finished(v1alpha1.PhaseSucceeded, 0))
	top.result("c1", child.id)
	top.add(finished(v1alpha1.PhaseSucceeded, 0))
	for query, want := range map[string]int{"?children=true": 3, "?children=false": 3, "?children=x": 0} {
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, base+"runs/r/events"+query, nil))
		if n := strings.Count(rec.Body.String(), "\nid: ") + strings.Count(rec.Body.String()[:3], "id:"); n != want {
			t.Errorf("%s: %d ids, want %d, in\n%s", query, n, want, rec.Body)
		}
		if bad := query == "?children=x"; bad != (rec.Code == http.StatusBadRequest) {
			t.Errorf("%s: status %d", query, rec.Code)
		}
	}
}

// beginBelow begins the journal of a run that a call of another one starts.
func (w *world) beginBelow(agent, parent, call string) *book {
	w.t.Helper()
	id := agent + "-" + journal.ChildSuffix(parent, call, agent)
	return w.beginID(id)
}

func (b *book) call(id string) {
	b.w.t.Helper()
	if _, err := b.Append(event.Event{Call: id, Data: event.ToolCall{Tool: "task"}}); err != nil {
		b.w.t.Error(err)
	}
}

func (b *book) result(id, child string) {
	b.w.t.Helper()
	d := event.ToolResult{}
	d.Child = &message.ChildRun{Run: child}
	if _, err := b.Append(event.Event{Call: id, Data: d}); err != nil {
		b.w.t.Error(err)
	}
}
