package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
)

// lookEvery is how many reads of a journal that is followed pass before the state folder
// is searched again for runs that a running call has started.
const lookEvery = 4

// TreeEvents reads the journal of a run and those of the runs below it as one sequence: by
// time, and whatever the clocks say, the events of a run are after the call that has
// started it and before the result of that call.
type TreeEvents struct {
	state  string
	follow bool

	lines []*line // that of the run at the top first
	known map[string]bool
	reads int
}

// TreeEvent is an event of TreeEvents.
type TreeEvent struct {
	event.Event
	// Line is the event as its journal has it, valid until the next event is read.
	Line []byte
	// Below is set for an event of a run below the one at the top.
	Below bool
}

// line is the journal of one run.
type line struct {
	id    string
	in    *journal.Follower
	above *line
	// call of the run above has started it.
	call string
	// next is the event that was read and not passed on, raw its bytes.
	next *event.Event
	raw  []byte
	// joined says that next was read by another follower, and in is before it. over says
	// that the last event was passed on. A line without more to read has no open file: a
	// run can have thousands of runs below it.
	joined, over bool
	// open are the calls that were begun and have no result yet, begun all that were.
	open, begun map[string]bool
	err         error
}

// NewTreeEvents reads the run of an id in a state folder, whose journal is in. follow is set where
// it is read again after its end.
func NewTreeEvents(state, id string, follow bool, in *journal.Follower) *TreeEvents {
	top := &line{id: id, in: in, open: map[string]bool{}, begun: map[string]bool{}}
	return &TreeEvents{state: state, follow: follow, lines: []*line{top}, known: map[string]bool{id: true}}
}

// Close closes the journals below; the caller closes that of the run.
func (m *TreeEvents) Close() {
	for _, l := range m.lines[1:] {
		_ = l.in.Close() // nothing was written
	}
}

// Next is the next event; io.EOF: there is none now.
func (m *TreeEvents) Next() (TreeEvent, error) {
	if m.reads == 0 {
		m.reads++
		if err := m.search(); err != nil {
			return TreeEvent{}, err
		}
	}
	for {
		l, err := m.first()
		if err != nil {
			return TreeEvent{}, err
		}
		if l != nil {
			return m.pass(l), nil
		}
		if found, err := m.look(); err != nil {
			return TreeEvent{}, err
		} else if !found {
			m.reads++
			return TreeEvent{}, io.EOF
		}
	}
}

// first is the line whose next event comes first; nil: there is none now.
func (m *TreeEvents) first() (*line, error) {
	var first *line
	for at := 0; at < len(m.lines); at++ {
		l := m.lines[at]
		if err := l.peek(); err != nil {
			if l.above == nil {
				return nil, fmt.Errorf("run %s: %w", l.id, err)
			}
			l.err = err
		}
		if l.next == nil || l.above != nil && !l.above.begun[l.call] {
			continue
		}
		if !m.waits(l) && (first == nil || l.next.Time.Before(first.next.Time)) {
			first = l
		}
	}
	return first, nil
}

// waits reports whether the next event of a line is the result of a call whose run has
// more to show.
func (m *TreeEvents) waits(l *line) bool {
	if !ends(*l.next) {
		return false
	}
	if child := startedRun(*l.next); child != "" && !m.known[child] {
		m.add(child)
	}
	for _, c := range m.lines {
		if c.above != l || c.call != l.next.Call {
			continue
		}
		if err := c.peek(); err != nil {
			c.err = err
		}
		if c.next != nil {
			return true
		}
	}
	return false
}

func ends(e event.Event) bool {
	switch e.Data.(type) {
	case event.ToolResult, event.ToolError:
		return true
	}
	return false
}

// startedRun is the run that a call has started, by its result.
func startedRun(e event.Event) string {
	switch d := e.Data.(type) {
	case event.ToolResult:
		if d.Child != nil {
			return d.Child.Run
		}
	case event.ToolError:
		if d.Child != nil {
			return d.Child.Run
		}
	}
	return ""
}

// pass takes the next event of a line.
func (m *TreeEvents) pass(l *line) TreeEvent {
	e := TreeEvent{Event: *l.next, Line: l.raw, Below: l.above != nil}
	l.next, l.raw = nil, nil
	if _, ok := e.Data.(event.RunFinished); ok && l.above != nil {
		l.over = true
		_ = l.in.Close()                                  // nothing was written
		l.in = journal.Follow(journal.Dir(m.state, l.id)) // without what was read
	}
	if _, ok := e.Data.(event.ToolCall); ok {
		l.open[e.Call], l.begun[e.Call] = true, true
	} else if ends(e.Event) {
		delete(l.open, e.Call)
	}
	return e
}

// look searches for runs that calls have started which have no result yet.
func (m *TreeEvents) look() (found bool, err error) {
	if m.follow && m.reads%lookEvery != 0 || !slices.ContainsFunc(m.lines, func(l *line) bool { return len(l.open) > 0 }) {
		return false, nil
	}
	before := len(m.lines)
	err = m.search()
	m.reads++ // not again for this read
	return len(m.lines) > before, err
}

// search follows every run below that has begun.
func (m *TreeEvents) search() error {
	var all []journal.Found
	err := journal.Children(m.state, func(id string) bool { return m.known[id] }, func(f journal.Found) { all = append(all, f) })
	for grown := true; grown; { // one may be below another
		grown = false
		for _, f := range all {
			if !m.known[f.ID] && m.known[f.Parent] {
				grown = m.join(f.ID) || grown
			}
		}
	}
	return err
}

// add follows a run by its id. One that was deleted, or that the id does not name, is left
// out.
func (m *TreeEvents) add(id string) {
	if found, err := journal.FindRun(m.state, id); err == nil && found.ID == id {
		m.join(id)
	}
	m.known[id] = true
}

// join reads a run whose first event names a run that is shown and its call.
func (m *TreeEvents) join(id string) bool {
	l := &line{id: id, in: journal.Follow(journal.Dir(m.state, id)), open: map[string]bool{}, begun: map[string]bool{}}
	l.err = l.peek()
	_ = l.in.Close() // nothing was written
	if l.next == nil {
		return false // its first event is not there yet, or is not readable
	}
	l.in, l.joined, l.raw = journal.Follow(journal.Dir(m.state, id)), true, bytes.Clone(l.raw)
	started, ok := l.next.Data.(event.RunStarted)
	if ok && started.Parent != nil {
		if at := slices.IndexFunc(m.lines, func(above *line) bool { return above.id == started.Parent.Run }); at >= 0 {
			l.above, l.call = m.lines[at], started.Parent.Call
			m.lines, m.known[id] = append(m.lines, l), true
			return true
		}
	}
	return false
}

// peek reads the next event, unless one is there or the journal ends for now.
func (l *line) peek() error {
	if l.next != nil || l.err != nil || l.over {
		return nil //nolint:nilerr // an error of this run alone, which stays with its line
	}
	if l.joined {
		if _, err := l.in.Next(); err != nil {
			return fmt.Errorf("read its first event again: %w", err)
		}
		l.joined = false
	}
	e, raw, err := l.in.EventLine()
	if err == nil {
		l.next, l.raw = &e, raw
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil //nolint:nilerr // io.EOF: the journal ends for now
}

// Damaged are the errors of journals below, which end what is read of them.
func (m *TreeEvents) Damaged() error {
	var all []error
	for _, l := range m.lines[1:] {
		if l.err != nil {
			all = append(all, fmt.Errorf("run %s below it: %w", l.id, l.err))
		}
	}
	return errors.Join(all...)
}
