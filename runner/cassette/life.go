package cassette

import (
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Entry is an event and its line.
type Entry struct {
	event.Event
	Line int
	// Past marks an event that would not have been recorded without the interruption, and
	// that the result of the run still shows.
	Past bool
	// Earlier marks an event of the turns before the newest: a replay begins behind them.
	Earlier bool
	// gone marks an entry that is left out.
	gone bool
}

// suspended is the phase of a run that waits, as package view calls it.
const suspended = "Suspended"

// Ended reports whether the run came to an end: one that was interrupted or waits for an
// approval cannot be replayed to its end.
func (c *Cassette) Ended() bool {
	f, ok := c.Events[len(c.Events)-1].Data.(event.RunFinished)
	return ok && f.Phase != suspended
}

// Interrupted reports whether more than one process has worked on the newest turn.
func (c *Cassette) Interrupted() bool {
	return slices.ContainsFunc(c.Events[c.turn()+1:], func(e event.Event) bool { return e.Type() == event.TypeRunResumed })
}

// Turns is how many turns the run has.
func (c *Cassette) Turns() int {
	turns := 1
	for _, e := range c.Events {
		if d, ok := e.Data.(event.RunResumed); ok && d.Turn != nil {
			turns = d.Turn.Number
		}
	}
	return turns
}

// Begun is the first event of the run, as its newest turn has it.
func (c *Cassette) Begun() event.RunStarted {
	started, _ := c.Events[0].Data.(event.RunStarted) // reading has checked it
	for _, e := range c.Events {
		if d, ok := e.Data.(event.RunResumed); ok {
			started = started.InTurn(d)
		}
	}
	return started
}

// turn is the place of the event that begins the newest turn.
func (c *Cassette) turn() int {
	for i, e := range slices.Backward(c.Events) {
		if d, ok := e.Data.(event.RunResumed); ok && d.Turn != nil {
			return i
		}
	}
	return 0
}

// Life returns the events as a single process without an interruption would have recorded
// them: a request that was sent again, a call that ran again and a question that was asked
// again occur once. The question whether a call ran was asked because of the interruption:
// it is marked as Past. What was recorded before the newest turn is as it was.
func (c *Cassette) Life() []Entry {
	begin := c.turn()
	l := &life{kept: map[string][]Entry{}, ofCall: map[string][]int{}}
	for i, e := range c.Events[begin:] {
		l.add(Entry{Event: e, Line: c.Line(begin + i)})
	}
	now := slices.DeleteFunc(l.entries, func(e Entry) bool { return e.gone })
	if begin == 0 {
		return now
	}
	all := make([]Entry, 0, begin+len(now))
	for i, e := range c.Events[:begin] {
		all = append(all, Entry{Event: e, Line: c.Line(i), Earlier: true})
	}
	return append(all, now...)
}

// life merges the events of several processes.
type life struct {
	entries []Entry
	// ofCall are the indexes of each call's entries: a recording may have a hundred
	// thousand calls.
	ofCall map[string][]int
	// kept is the approval that a call was given by a process that was interrupted,
	// for one that judges it again.
	kept map[string][]Entry
	// interrupted: more than one process was at work.
	interrupted bool
	// again: the next step has begun already.
	again bool
	// unknown is the call that is asked about because it may have happened.
	unknown string
	// void are the requests that are left out.
	void int
}

func (l *life) add(e Entry) {
	switch d := e.Data.(type) {
	case event.RunResumed:
		if d.Turn != nil { // it is the first
			l.append(e)
			return
		}
		l.resumed()
		return
	case event.StepStart:
		if l.again {
			l.again = false
			return
		}
	case event.ApprovalRequested:
		if d.Unknown {
			l.unknown, e.Past = e.Call, true
		} else {
			delete(l.kept, e.Call)
		}
	case event.ApprovalDecided:
		if l.unknown == e.Call && e.Call != "" {
			l.unknown, e.Past = "", true
		}
	case event.ModelRequest:
		d.Messages -= l.void
		e.Data = d
	case event.ToolInputEnd:
		if l.interrupted {
			l.judged(e)
		}
	case event.ToolCall:
		if d.Attempt > 1 {
			l.drop(e.Call, func(o Entry) bool {
				switch o.Data.(type) {
				case event.ToolCall, event.ToolProgress, event.QuestionAsked, event.QuestionAnswered:
					return true
				}
				return false
			})
			d.Attempt = 0
			e.Data = d
		}
		for _, k := range l.kept[e.Call] {
			l.append(k)
		}
		delete(l.kept, e.Call)
	}
	l.append(e)
}

func (l *life) append(e Entry) {
	if e.Call != "" {
		l.ofCall[e.Call] = append(l.ofCall[e.Call], len(l.entries))
	}
	l.entries = append(l.entries, e)
}

// drop leaves out entries of a call.
func (l *life) drop(call string, out func(Entry) bool) {
	l.ofCall[call] = slices.DeleteFunc(l.ofCall[call], func(i int) bool {
		l.entries[i].gone = l.entries[i].gone || out(l.entries[i])
		return l.entries[i].gone
	})
}

// resumed forgets what the process that was interrupted had left open.
func (l *life) resumed() {
	l.unknown, l.interrupted = "", true
	open := l.openRequest()
	if open != "" {
		l.void++
	}
	for i := range l.entries {
		o := &l.entries[i]
		if o.Type() == event.TypeRunFinished || open != "" && o.Message == open { // it waited, or was asked again
			o.gone = true
		}
	}
	// A step without an answer begins again; what was tried in it stays.
	for i, o := range slices.Backward(l.entries) {
		if o.gone {
			continue
		}
		switch o.Data.(type) {
		case event.ModelResponse, event.UserMessage, event.MessageReceived, event.RunStarted, event.RunResumed:
			return
		case event.ModelRequest:
			l.again = l.inStep(i)
			return
		case event.StepStart:
			l.entries[i].gone = true
			return
		}
	}
}

// openRequest is the message of the newest request if it has no answer.
func (l *life) openRequest() string {
	for _, o := range slices.Backward(l.entries) {
		if o.gone {
			continue
		}
		switch o.Data.(type) {
		case event.ModelResponse, event.ContextCompaction:
			return ""
		case event.ModelRequest:
			return o.Message
		}
	}
	return ""
}

// inStep reports whether the request at i belongs to a step that has no answer.
func (l *life) inStep(i int) bool {
	for _, o := range slices.Backward(l.entries[:i]) {
		if o.gone {
			continue
		}
		switch o.Data.(type) {
		case event.ModelResponse:
			return false
		case event.StepStart:
			return true
		}
	}
	return false
}

// judged records that a call was decided about, and drops its earlier decision. An
// approval that still applies is kept until the call runs.
func (l *life) judged(e Entry) {
	l.drop(e.Call, func(Entry) bool { return false }) // forgets the places of what is gone
	of := l.ofCall[e.Call]
	if !slices.ContainsFunc(of, func(i int) bool { return l.entries[i].Type() == event.TypeToolInputEnd }) {
		return
	}
	var question, answer *Entry
	for _, i := range of {
		o := &l.entries[i]
		switch d := o.Data.(type) {
		case event.ApprovalRequested:
			q := *o
			question, answer = &q, nil
		case event.ApprovalDecided:
			if d.State == message.Approved {
				a := *o
				answer = &a
			}
		}
	}
	switch { // without a question an approval that is kept still applies
	case question != nil && answer != nil:
		l.kept[e.Call] = []Entry{*question, *answer}
	case question != nil:
		delete(l.kept, e.Call)
	}
	l.drop(e.Call, func(o Entry) bool {
		switch o.Data.(type) {
		case event.ToolInputEnd, event.PolicyDecision, event.ApprovalRequested, event.ApprovalDecided, event.Warning:
			return true
		}
		return false
	})
}
