package runs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/journal"
)

// scene writes journals whose clocks differ.
type scene struct {
	t     *testing.T
	state string
	at    time.Time
}

// run writes the journal of a run whose events are at seconds of a clock that is wrong.
func (s *scene) run(id string, parent *event.Parent, clock time.Duration, events ...event.Event) {
	s.t.Helper()
	w, err := journal.Create(s.t.Context(), journal.Options{Dir: journal.Dir(s.state, id), Run: id})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	all := append([]event.Event{{Data: event.RunStarted{Agent: id, Parent: parent}}}, events...)
	for i, e := range all {
		e.Run, e.Time = id, s.at.Add(clock+time.Duration(i)*time.Second)
		if _, err := w.Append(e); err != nil {
			s.t.Fatal(err)
		}
	}
}

func calls(id string) event.Event {
	return event.Event{Call: id, Data: event.ToolCall{Tool: "task"}}
}

func returns(id, child string) event.Event {
	d := event.ToolResult{}
	if child != "" {
		d.Child = &message.ChildRun{Run: child}
	}
	return event.Event{Call: id, Data: d}
}

// Whatever the clocks say, what a subagent does is between its call and the result of that.
func TestEventsOfATreeAreInterleaved(t *testing.T) {
	s := &scene{t: t, state: t.TempDir(), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	child := func(agent, parent, call string) string { return agent + "-" + journal.ChildSuffix(parent, call, agent) }
	one, two, deep := child("one", "top", "c1"), child("two", "top", "c2"), ""
	deep = child("deep", two, "d1")
	done := event.Event{Data: event.RunFinished{}}
	s.run("top", nil, 0, calls("c1"), calls("c2"), returns("c1", one), returns("c2", two), done)
	s.run(one, &event.Parent{Run: "top", Call: "c1"}, time.Hour, event.Event{Data: event.StepStart{Step: 1}}, done) // it seems to begin after the end
	s.run(two, &event.Parent{Run: "top", Call: "c2"}, -time.Hour, calls("d1"), returns("d1", ""), done)             // it seems to end before the beginning
	s.run(deep, &event.Parent{Run: two, Call: "d1"}, 0, done)
	s.run(child("other", "elsewhere", "c1"), &event.Parent{Run: "elsewhere", Call: "c1"}, 0, done)
	s.run(child("liar", "top", "c9"), &event.Parent{Run: "top", Call: "c9"}, 0, done) // there is no such call

	read := func(from int64) (all []string) {
		see := func(e event.Event) error {
			all = append(all, fmt.Sprintf("%s %s", strings.Split(e.Run, "-")[0], e.Type()))
			return nil
		}
		told, err := Events(t.Context(), EventsOptions{Ref: "top", State: s.state, From: from, Below: see}, see)
		if err != nil || told.Finished == nil {
			t.Fatalf("%+v, %v", told, err)
		}
		return all
	}
	want := "top run.started, top tool.call, top tool.call, two run.started, two tool.call, deep run.started, deep run.finished, two tool.result, two run.finished, " +
		"one run.started, one step.start, one run.finished, top tool.result, top tool.result, top run.finished"
	if got := strings.Join(read(0), ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// What is before the first event that is wanted is left out of the runs below, too.
	if got := strings.Join(read(6), ", "); got != "top run.finished" {
		t.Errorf("from the end: %s", got)
	}

	// A journal below that cannot be read is an error behind the rest.
	files, err := os.ReadDir(journal.Dir(s.state, deep))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "events-") {
			name := journal.Dir(s.state, deep) + "/" + f.Name()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(string(text), "\n")
			if err := os.WriteFile(name, []byte(lines[0]+"{}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := 0
	_, err = Events(t.Context(), EventsOptions{Ref: "top", State: s.state, Below: func(event.Event) error { n++; return nil }}, func(event.Event) error { n++; return nil })
	if err == nil || !strings.Contains(err.Error(), deep) || n != 14 {
		t.Errorf("%d events, %v", n, err)
	}
}

// Two runs below that ask the same are two questions, and none is left open when the run at
// the top has ended.
func TestQuestionsOfATree(t *testing.T) {
	s := &scene{t: t, state: t.TempDir(), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	child := func(agent, parent, call string) string { return agent + "-" + journal.ChildSuffix(parent, call, agent) }
	asks := []event.Event{
		{Data: event.StepStart{Step: 1}},
		{Message: "m", Data: event.ModelRequest{}},
		{Message: "m", Part: "p", Call: "call_1", Data: event.ToolInputStart{Tool: "bash"}},
		{Message: "m", Data: event.ModelResponse{}},
		{Message: "m", Part: "p", Call: "call_1", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Ask, Rule: "p/ask", Hash: "h"}}},
		{Message: "m", Part: "p", Call: "call_1", Data: event.ApprovalRequested{Tool: "bash", Rule: "p/ask", Hash: "h"}},
	}
	for _, call := range []string{"c1", "c2"} {
		s.run(child("one", "top", call), &event.Parent{Run: "top", Call: call}, 0, asks...)
	}
	read := func() []Asked {
		all, err := TreeQuestions(t.Context(), s.state, "top")
		if err != nil || len(all) != 2 {
			t.Fatalf("%d questions, %v", len(all), err)
		}
		return all
	}
	s.run("top", nil, 0, calls("c1"), calls("c2"))
	all := read()
	if all[0].ID == all[1].ID || !all[0].Open || !all[1].Open || all[0].Run == all[1].Run || all[0].Agent == "" {
		t.Errorf("got %+v", all)
	}
	if err := os.RemoveAll(journal.Dir(s.state, "top")); err != nil {
		t.Fatal(err)
	}
	s.run("top", nil, 0, calls("c1"), event.Event{Data: event.RunFinished{Phase: "Failed"}})
	for _, q := range read() {
		if q.Open || !strings.Contains(q.Why, "the run above ended") {
			t.Errorf("open %v, %q", q.Open, q.Why)
		}
	}
}

// A reader of a run with many runs below it holds few files open.
func TestEventsOfALargeTreeHoldFewFilesOpen(t *testing.T) {
	const files, many = "/proc/self/fd", 40
	if _, err := os.Stat(files); err != nil {
		t.Skip("this host does not list open files")
	}
	s := &scene{t: t, state: t.TempDir(), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var events []event.Event
	for i := range many {
		call := fmt.Sprintf("c%d", i)
		child := "helper-" + journal.ChildSuffix("top", call, "helper")
		s.run(child, &event.Parent{Run: "top", Call: call}, time.Duration(i)*time.Second, event.Event{Data: event.StepStart{Step: 1}}, event.Event{Data: event.RunFinished{}})
		events = append(events, calls(call), returns(call, child))
	}
	s.run("top", nil, 0, append(events, event.Event{Data: event.RunFinished{}})...)
	in := journal.Follow(journal.Dir(s.state, "top"))
	tree := NewTreeEvents(s.state, "top", true, in)
	open := func() int {
		all, err := os.ReadDir(files)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range all {
			if to, err := os.Readlink(files + "/" + f.Name()); err == nil && strings.HasPrefix(to, s.state) {
				n++
			}
		}
		return n
	}
	read, most := 0, 0
	for ; ; read++ {
		if _, err := tree.Next(); err != nil {
			break
		}
		most = max(most, open())
	}
	if want := 1 + 5*many + 1; read != want || tree.Damaged() != nil || most > 3 {
		t.Errorf("%d events of %d, %d files open at a time, %v", read, want, most, tree.Damaged())
	}
	tree.Close()
	if err := in.Close(); err != nil || open() != 0 {
		t.Errorf("%d files are left open, %v", open(), err)
	}
}

// What a reader keeps of runs that have not begun, or have ended, is little.
func TestEventsOfALargeTreeKeepNoBuffers(t *testing.T) {
	s := &scene{t: t, state: t.TempDir(), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	const many = 64
	var events []event.Event
	for i := range many {
		call := fmt.Sprintf("c%d", i)
		child := "helper-" + journal.ChildSuffix("top", call, "helper")
		s.run(child, &event.Parent{Run: "top", Call: call}, 0, event.Event{Data: event.TextEnd{Text: strings.Repeat("x", 40<<10)}}, event.Event{Data: event.RunFinished{}})
		events = append(events, calls(call), returns(call, child))
	}
	s.run("top", nil, 0, append(events, event.Event{Data: event.RunFinished{}})...)
	in := journal.Follow(journal.Dir(s.state, "top"))
	defer in.Close() //nolint:errcheck // nothing was written
	tree := NewTreeEvents(s.state, "top", true, in)
	defer tree.Close()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // less than that
	}
	before, read := heap(), 0
	for ; ; read++ {
		if _, err := tree.Next(); err != nil {
			break
		}
		if most := int64(many * 20 << 10); read == 1 || read == 4*many {
			if kept := heap() - before; kept > most {
				t.Errorf("after %d events it keeps %d KiB", read, kept>>10)
			}
		}
	}
	if want := 1 + 5*many + 1; read != want {
		t.Errorf("%d events of %d", read, want)
	}
}
