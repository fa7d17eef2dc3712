// Package moment finds a place in the journal of a run: what was said and done before it, and how the files were then.
package moment

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// maxEvents bounds the events of a run that are read at once.
const maxEvents = 2_000_000

// Moment is a place between two events of a run.
type Moment struct {
	// Run is the whole run, Before what it was at this place.
	Run, Before *view.Run
	// Begin is the first event.
	Begin event.RunStarted
	// Events are those of Before. Of the calls that are not over they hold what the model
	// has asked for, and neither a decision nor an answer.
	Events []event.Event
	// Seq is the number of the last event before the place; Message and Call are where it
	// is: before that message, or before that call. Both are "" at the end of the run.
	Seq           int64
	Message, Call string
	// Hash is that of the last event before the place, "" of the first.
	Hash string
	// Files is the state of the files; see Files.
	Files Files
}

// Folder is where the files of the run are: its copy, or else the folder that it was made
// of. "" is a run without files.
func (m *Moment) Folder() string {
	w := m.Run.Started.Workspace
	if info, err := os.Lstat(w.Dir); m.Files.State == "" && w.Source != "" || err != nil || !info.IsDir() {
		return w.Source // the copy was removed, or is of no use
	}
	return w.Dir
}

// Files is the state of the files at a moment.
type Files struct {
	// State is its blob; "" where no program had run until the end of the run: the files
	// were those of the source.
	State string
	// Unknown is why the state is not known; "" when it is.
	Unknown string
}

// Find finds a place in a run:
//
//	""             its end
//	a message      before it: the prompt of a turn, an answer of the model
//	a call         before it was judged, with the results of those before it
//	turn/N         before the prompt of that turn
//	step/N         before the model was asked in that step
//
// An id may be given by a beginning that is unique. The error is a *reason.UsageError.
func Find(ctx context.Context, found journal.Found, at string) (*Moment, error) {
	all, err := read(ctx, found)
	if err != nil {
		return nil, err
	}
	m := &Moment{Run: fold(all)}
	if m.Run.ID == "" {
		return nil, reason.Usagef("run %s was interrupted before it began", found.ID)
	}
	m.Begin, _ = all[0].Data.(event.RunStarted)
	cut, err := m.place(all, at)
	if err != nil {
		return nil, err
	}
	m.Files = filesAt(all, cut)
	m.Events = m.before(all[:cut])
	m.Before = fold(m.Events)
	if cut > 0 {
		m.Seq = all[cut-1].Seq
		if cut < len(all) {
			m.Hash = all[cut].Prev
		}
	}
	return m, nil
}

func read(ctx context.Context, found journal.Found) (all []event.Event, err error) {
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", found.ID, err)
		}
		if len(all) == maxEvents {
			return nil, reason.Usagef("run %s has more than %d events", found.ID, maxEvents)
		}
		all = append(all, e)
	}
	return all, nil
}

func fold(events []event.Event) *view.Run {
	v := &view.Run{}
	for _, e := range events {
		if err := v.Apply(e); err != nil {
			v.Warnings = append(v.Warnings, err.Error())
		}
	}
	return v
}

// place returns how many events come before the place.
func (m *Moment) place(all []event.Event, at string) (int, error) {
	run := m.Run.ID
	kind, number, numbered := strings.Cut(at, "/")
	switch n, err := strconv.Atoi(number); {
	case at == "":
		return len(all), nil
	case numbered && (err != nil || kind != "turn" && kind != "step"):
		return 0, reason.Usagef("run %s: %q is not a place in a run", run, at).WithHint("name a message, a call, turn/N or step/N: agentctl events run/" + run)
	case numbered && kind == "turn":
		if n < 1 || n > len(m.Run.Turns) {
			return 0, reason.Usagef("run %s has %d turns, and no turn %d", run, len(m.Run.Turns), n)
		}
		return m.beforeMessage(all, m.Run.Turns[n-1].Message)
	case numbered:
		for i, e := range slices.Backward(all) { // the newest, of a number that a revert has used again
			if d, ok := e.Data.(event.StepStart); ok && d.Step == n {
				m.Message = e.Message
				if m.Message == "" && i+1 < len(all) {
					m.Message = all[i+1].Message
				}
				return i, nil
			}
		}
		return 0, reason.Usagef("run %s has no step %d", run, n)
	}
	var messages, calls []string
	for _, said := range m.Run.Messages {
		if strings.HasPrefix(said.ID, at) {
			messages = append(messages, said.ID)
		}
		for _, c := range said.Calls() {
			if strings.HasPrefix(c.CallID, at) {
				calls = append(calls, c.CallID)
			}
		}
	}
	if slices.Contains(messages, at) {
		messages, calls = []string{at}, nil
	} else if slices.Contains(calls, at) {
		messages, calls = nil, []string{at}
	}
	switch {
	case len(messages)+len(calls) > 1:
		return 0, reason.Usagef("run %s: %q begins several messages and calls", run, at).WithHint("agentctl events run/" + run + " shows them")
	case len(messages) == 1:
		return m.beforeMessage(all, messages[0])
	case len(calls) == 1:
		return m.beforeCall(all, calls[0])
	}
	return 0, reason.Usagef("run %s has no message and no call %q", run, at).
		WithHint("agentctl events run/" + run + " shows them; a call of a subagent is one of another run: agentctl get runs")
}

// beforeMessage is the place before a message. A step begins before its answer.
func (m *Moment) beforeMessage(all []event.Event, id string) (int, error) {
	m.Message = id
	i := slices.IndexFunc(all, func(e event.Event) bool { return e.Message == id })
	if i > 0 {
		if _, ok := all[i-1].Data.(event.StepStart); ok {
			return i - 1, nil
		}
	}
	return max(i, 0), nil
}

// beforeCall is the place before a call was judged: behind the results of those that
// had ended before it began to run.
func (m *Moment) beforeCall(all []event.Event, id string) (int, error) {
	m.Message, m.Call = m.Run.MessageOf(id), id
	answered := false
	for i, e := range all {
		if _, ok := e.Data.(event.ModelResponse); ok && e.Message == m.Message {
			answered = true
		}
		if !answered || e.Call != id {
			continue
		}
		switch e.Data.(type) {
		case event.ToolInputEnd, event.PolicyDecision, event.Warning:
		default: // an approval, the call, or its error
			return i, nil
		}
	}
	if !answered {
		return 0, reason.Usagef("run %s: call %s was never complete", m.Run.ID, id)
	}
	return len(all), nil // it was judged and never came to its turn
}

// before are the events before the place, without those that have judged, asked about and
// begun calls which have no result there.
func (m *Moment) before(events []event.Event) []event.Event {
	if m.Call == "" {
		return events
	}
	over := map[string]bool{}
	for _, e := range events {
		switch e.Data.(type) {
		case event.ToolResult, event.ToolError:
			over[e.Call] = true
		}
	}
	answered, kept := false, make([]event.Event, 0, len(events))
	for _, e := range events {
		if _, ok := e.Data.(event.ModelResponse); ok && e.Message == m.Message {
			answered = true
		}
		if answered && e.Call != "" && e.Message == m.Message && !over[e.Call] {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// filesAt is the state of the files before the event at a place.
func filesAt(all []event.Event, cut int) (f Files) {
	steps, begun := false, map[string]bool{}
	changed := ""
	for _, e := range all[:cut] {
		switch d := e.Data.(type) {
		case event.RunResumed:
			if d.Turn != nil && d.Turn.Fresh {
				f, changed = Files{}, ""
			}
		case event.RunReverted:
			f.State, f.Unknown, changed = d.Files, "", ""
		case event.WorkspaceSnapshot:
			if d.Step == 0 {
				steps = d.Steps
			}
			if d.Error == "" {
				f.State, f.Unknown = d.Snapshot, ""
			} else {
				f.Unknown = "the files after step " + strconv.Itoa(d.Step) + " could not be recorded: " + d.Error
			}
		case event.ToolCall:
			begun[e.Call] = true
		case event.ToolResult:
			delete(begun, e.Call)
			changed = wrote(changed, e.Call, &d.ToolResult)
		case event.ToolError:
			delete(begun, e.Call)
			changed = wrote(changed, e.Call, &d.ToolResult)
		case event.StepFinish:
			if steps {
				changed = ""
			}
		}
	}
	for id := range begun {
		changed = id
	}
	if cut < len(all) { // a turn that begins with the files of the source as they are
		if d, ok := all[cut].Data.(event.RunResumed); ok && d.Turn != nil && d.Turn.Fresh {
			f, changed, cut = Files{}, "", cut+1
		}
	}
	switch {
	case f.Unknown != "":
	case changed != "":
		f.Unknown = "call " + changed + " may have changed them, and they are recorded after each step only"
		if !steps {
			f.Unknown = "the run is one of an earlier version, which did not record them after each step"
		}
	case f.State == "":
		for _, e := range all[cut:] {
			if d, ok := e.Data.(event.RunResumed); ok && d.Turn != nil && d.Turn.Fresh {
				break
			}
			if d, ok := e.Data.(event.WorkspaceSnapshot); ok && d.Step == 0 {
				f.State = d.Snapshot // no program has run until then
				break
			}
		}
	}
	return f
}

// wrote is the newest call that may have changed the files.
func wrote(before, call string, r *message.ToolResult) string {
	if r.Writes || r.Child != nil {
		return call
	}
	return before
}
