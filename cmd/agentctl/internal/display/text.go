package display

import (
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// textRun shows a run to a person: the progress on stderr, the answer on stdout.
type textRun struct {
	mu             sync.Mutex
	stdout, stderr *Screen
	o              RunOptions

	run     view.Run
	answers map[string]message.Answer // by call
	running []work                    // calls, in the order they began
	by      string                    // the Model that gave the newest answer

	stream   stream
	markdown markdown
	children map[string]*child // the runs below that work
	// inquiring are the running calls whose question is on the terminal.
	inquiring []string
	// asking counts open questions; what comes up meanwhile is held back.
	asking int
	held   strings.Builder
	// wait is the model request that is under way.
	wait modelWait
	// drawn counts the last lines of the terminal that are the status.
	drawn int
	// ticks draws the status again while calls run; nil while none does.
	ticks *time.Timer
}

func newTextRun(stdout, stderr *Screen, o RunOptions) *textRun {
	t := &textRun{stdout: stdout, stderr: stderr, o: o, answers: map[string]message.Answer{}, markdown: markdown{s: stderr}}
	if o.Past != nil {
		t.SetPast(o.Past)
	}
	t.stream.start(&t.mu, t.flow)
	return t
}

// SetPast begins with the run as it was before.
func (t *textRun) SetPast(past *view.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run, t.by = *past, past.Started.Model.Name
}

// Event shows an event.
func (t *textRun) Event(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.run.Apply(e); err != nil {
		t.warn(err.Error())
		return
	}
	t.waits(e)
	switch d := e.Data.(type) {
	case event.RunStarted:
		t.by = d.Model.Name
		switch {
		case t.o.Replay:
			t.say(replayHeader(t.stderr, e, d))
		case t.o.Chat:
			t.say(chatHeader(t.stderr, t.o.Place.name(e.Run), d))
		default:
			t.say(header(t.stderr, t.o.Place.name(e.Run), d))
		}
	case event.RunResumed:
		if d.Turn != nil {
			t.by = d.Turn.Model.Name
		}
		if t.o.Chat {
			t.say(chatTurn(t.stderr, d))
			return
		}
		t.say(resumed(t.stderr, t.o.Place.name(e.Run), &t.run, d))
	case event.TextDelta:
		t.piece(e, d.Text, "")
	case event.TextEnd:
		t.whole(e, d.Text, "")
	case event.ReasoningDelta:
		t.piece(e, d.Text, dim)
	case event.ReasoningEnd:
		t.whole(e, d.Text, dim)
	case event.ModelResponse:
		if d.Model.Name != t.by {
			t.by = d.Model.Name
			t.say(t.stderr.paint(dim, cut("answered by "+modelName(d.Model), t.stderr.width())) + "\n")
		}
	case event.ModelRetry:
		t.stream.forget()
		t.warn(retry(d.Retry))
	case event.MessageReceived:
		t.say(received(t.stderr, d))
	case event.ContextPrune:
		t.say(pruned(t.stderr, d))
	case event.ContextCompaction:
		t.say(compacted(t.stderr, d))
	case event.EgressConnection:
		if d.Decision == message.Deny {
			t.warn(refusedConnection(d))
		}
	case event.Warning:
		t.warn(d.Message)
	default:
		t.callEvent(e)
	}
}

func (t *textRun) callEvent(e event.Event) {
	switch d := e.Data.(type) {
	case event.PolicyDecision:
		for _, w := range d.Warnings {
			t.warn(w)
		}
	case event.ApprovalRequested:
		if t.o.Asks {
			t.endLine()
			t.clear()
			t.asking++
		} else if d.ExpiresAt > 0 {
			t.say(asked(t.stderr, e, t.o.Place, title(t.run.Call(e.Call)), d))
		}
	case event.QuestionAsked:
		switch {
		case d.ExpiresAt == 0: // the run does not wait
		case t.o.Asks:
			t.endLine()
			t.clear()
			t.asking++
			t.inquiring = append(t.inquiring, e.Call)
		default:
			c := t.run.Call(e.Call)
			t.say(inquired(t.stderr, e, t.o.Place, c.Tool, d))
		}
	case event.QuestionAnswered:
		t.replied(e.Call)
	case event.ApprovalDecided:
		t.answers[e.Call] = d.Answer
		if t.asking > 0 {
			t.asking--
			t.release()
		}
	case event.ToolCall:
		t.begins(e)
		t.endLine()
		t.draw()
	case event.ToolResult, event.ToolError:
		t.replied(e.Call) // its question ends with it
		t.ends(e.Call)
		c := t.run.Call(e.Call)
		t.say(callLine(t.stderr, c, t.answers[e.Call], t.run.Started.Workspace.Dir))
		delete(t.answers, e.Call)
	}
}

// replied reports that a running call does not wait for an answer any more.
func (t *textRun) replied(call string) {
	if !slices.Contains(t.inquiring, call) {
		return
	}
	t.inquiring = remove(t.inquiring, call)
	t.asking--
	t.release()
}

// Notice shows a line that is not an event, even while a person is asked.
func (t *textRun) Notice(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLine()
	t.clear()
	t.stderr.print(Line(text) + "\n")
}

// Finish shows the answer and the footer. An answer that the terminal shows
// already, because it was streamed there, is not repeated.
func (t *textRun) Finish(run *view.Run, journal string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.stop()
	t.wait.stop()
	t.stopTicks()
	t.asking, t.running = 0, nil
	t.release()
	t.say("")
	if f := run.Finished; f != nil && f.Output != "" && !t.o.Mute {
		t.answer(f)
	}
	if t.o.Replay {
		t.say(replayFooter(t.stderr, run, journal))
		return t.stdout.Err()
	}
	if t.o.Chat {
		t.say(chatFooter(t.stderr, run))
		return t.stdout.Err()
	}
	t.say(footer(t.stderr, run, journal, t.o.Place))
	return t.stdout.Err()
}

func (t *textRun) answer(f *event.RunFinished) {
	seen := t.stream.seen() == Clean(f.Output)
	switch {
	case f.Phase != view.Succeeded:
		// stdout holds the answer of a run that succeeded, and nothing else.
		if !seen {
			t.say("the answer so far:\n" + Clean(endLine(f.Output)))
		}
	case t.stdout.TTY && seen:
	case t.stdout.TTY:
		t.stdout.print(Clean(endLine(f.Output)))
	default:
		t.stdout.print(endLine(f.Output))
	}
}

// warn shows a warning as a line.
func (t *textRun) warn(text string) {
	t.say(cut(t.stderr.paint(yellow, "warning:")+" "+Line(text), 0) + "\n")
}

// say shows whole lines, above the status line.
func (t *textRun) say(text string) {
	t.endLine()
	if t.asking > 0 {
		t.held.WriteString(text)
		return
	}
	t.clear()
	t.stderr.print(text)
	t.draw()
}

// release shows what was held back while a person was asked.
func (t *textRun) release() {
	if t.asking > 0 || t.held.Len() == 0 {
		return
	}
	text := t.held.String()
	t.held.Reset()
	t.say(text)
}

// piece shows a part of a text while the model writes it.
func (t *textRun) piece(e event.Event, text string, st style) {
	if t.stderr.TTY {
		t.stream.add(e, text, st)
	}
}

// whole ends a text; what no piece has brought is shown now.
func (t *textRun) whole(e event.Event, text string, st style) {
	if !t.stderr.TTY {
		return
	}
	if !t.stream.has(e.Part) {
		t.stream.add(e, text, st)
	}
	t.stream.end(e.Part)
}

// flow is called by the stream when a piece is due.
func (t *textRun) flow(text string, st style) {
	if t.asking > 0 {
		t.held.WriteString(t.stderr.paint(st, text))
		return
	}
	t.clear()
	if t.o.Chat && st == "" {
		t.stderr.print(t.markdown.add(text))
		return
	}
	t.stderr.print(t.stderr.paint(st, text))
}

func (t *textRun) endLine() { t.stream.endLine() }

func remove(list []string, s string) []string {
	kept := list[:0]
	for _, e := range list {
		if e != s {
			kept = append(kept, e)
		}
	}
	return kept
}

func endLine(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
