package display

import (
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// shortRun is how many characters of the end of a run's id its short name has.
const shortRun = 6

// mostIndent is the depth of the tree of runs from which lines are not indented further.
const mostIndent = 8

// ShortRun is the name by which a line calls the run of a subagent: its agent and the
// beginning of the rest of its id. Commands take it where no other run begins with it.
func ShortRun(id string) string {
	at := strings.LastIndexByte(id, '-')
	return Line(id[:min(len(id), at+1+shortRun)])
}

func marked(s *Screen, run string) string { return s.paint(cyan, "["+ShortRun(run)+"]") }

// ChildEventLine is EventLine for an event of a run below.
func ChildEventLine(s *Screen, e event.Event) error {
	return eventLine(s, e, marked(s, e.Run)+" ")
}

// MarkedLines shows foreign text, each line behind a mark. A pipe gets the text as it is.
func MarkedLines(s *Screen, mark, text string) error {
	var b strings.Builder
	for line := range strings.Lines(endLine(text)) {
		b.WriteString(s.paint(cyan, "["+Line(mark)+"]") + " " + s.foreign(line))
	}
	s.print(b.String())
	return s.Err()
}

// Lines shows a text of another run, each line behind a mark.
func (t *TextLog) Lines(mark, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.endLine()
	return MarkedLines(t.screen, mark, text)
}

// child is a run below that is shown between the lines of the run.
type child struct {
	run     view.Run
	answers map[string]message.Answer // by call
	// asking are its calls whose question is on the terminal, running those that run.
	asking, running []string
}

// Child shows an event of a run below: its calls, behind the name of the run.
func (t *textRun) Child(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.children[e.Run]
	if c == nil {
		if c = (&child{answers: map[string]message.Answer{}}); t.children == nil {
			t.children = map[string]*child{}
		}
		t.children[e.Run] = c
	}
	if c.run.Apply(e) != nil {
		return // its own journal shows what is wrong with it
	}
	mark := c.indent() + marked(t.stderr, e.Run) + " "
	switch d := e.Data.(type) {
	case event.RunStarted:
		t.say(fit(mark+t.stderr.paint(dim, "agent "+Line(d.Agent)+": "+fit(Line(d.Prompt), maxTitle)), t.stderr.width()) + "\n")
	case event.Warning:
		t.warn("run/" + e.Run + ": " + d.Message)
	case event.ApprovalRequested:
		t.childAsks(c, e.Call, d.ExpiresAt > 0, func() string { return asked(t.stderr, e, t.o.Place, title(c.run.Call(e.Call)), d) })
	case event.QuestionAsked:
		if d.ExpiresAt > 0 { // else the run does not wait
			t.childAsks(c, e.Call, true, func() string { return inquired(t.stderr, e, t.o.Place, c.run.Call(e.Call).Tool, d) })
		}
	case event.ApprovalDecided:
		c.answers[e.Call] = d.Answer
		t.childAnswered(c, e.Call)
	case event.QuestionAnswered:
		t.childAnswered(c, e.Call)
	case event.ToolCall:
		c.running = append(c.running, e.Call)
	case event.ToolResult, event.ToolError:
		t.childAnswered(c, e.Call)
		c.running = remove(c.running, e.Call)
		t.say(childLine(t.stderr, mark, c.run.Call(e.Call), c.answers[e.Call], c.run.Started.Workspace.Dir))
		delete(c.answers, e.Call)
	case event.RunFinished:
		for len(c.asking) > 0 {
			t.childAnswered(c, c.asking[0])
		}
		delete(t.children, e.Run)
		t.say(fit(mark+summary(t.stderr, &c.run), t.stderr.width()) + "\n")
	}
}

// indent shows how deep in the tree of runs a run is.
func (c *child) indent() string {
	depth := 1
	if p := c.run.Started.Parent; p != nil {
		depth = max(1, len(p.Agents))
	}
	return strings.Repeat("  ", min(depth, mostIndent))
}

// childAsks holds back what is shown while a question of a run below is on the terminal, or
// says how it is answered.
func (t *textRun) childAsks(c *child, call string, waits bool, how func() string) {
	switch {
	case t.o.Asks:
		t.endLine()
		t.clear()
		t.asking++
		c.asking = append(c.asking, call)
	case waits:
		t.say(how())
	}
}

func (t *textRun) childAnswered(c *child, call string) {
	before := len(c.asking)
	c.asking = remove(c.asking, call)
	if t.asking -= before - len(c.asking); before > len(c.asking) {
		t.release()
	}
}

// childLine is the one line that stays of a call of a run below.
func childLine(s *Screen, mark string, c *message.ToolPart, answer message.Answer, root string) string {
	took := "-"
	if c.Result != nil && c.Start > 0 {
		took = duration(time.Duration(c.Result.DurationMicros) * time.Microsecond)
	}
	line := mark + s.paint(bold, cut(Line(c.Tool), 24)) + "  " + s.paint(stateStyle(c), Line(string(c.State))) + "  " + took
	if about := title(c); about != "" {
		line += "  " + about
	}
	if why := cut(Line(why(c, answer, root)), maxWhy); why != "" {
		line += s.paint(dim, " · ") + why
	}
	return fit(line, s.width()) + "\n"
}

// SetPast changes nothing: an event is shown as it is.
func (q *quietRun) SetPast(*view.Run) {}

// Child shows nothing: what programs read is about the run itself.
func (q *quietRun) Child(event.Event) {}
