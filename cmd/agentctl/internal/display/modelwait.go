package display

import (
	"fmt"
	"time"

	"agentctl.dev/agentctl/api/event"
)

const (
	// statusEvery is how often the status line of a terminal is drawn while a
	// model is waited for.
	statusEvery = time.Second
	// heartbeatEvery is how often a line reports the wait without a terminal.
	heartbeatEvery = 30 * time.Second
)

// modelWait is a model request whose answer has not come. It belongs to the mutex
// of its renderer, which its timer takes too.
type modelWait struct {
	since time.Time // zero: no request is under way
	retry string    // how the last attempt failed
	// call is the tool whose call is being written, and size what came of it.
	call  string
	size  int64
	timer *time.Timer
}

func (w *modelWait) asked() bool { return !w.since.IsZero() }

// long reports whether the wait is worth a status line: most answers begin sooner.
func (w *modelWait) long() bool { return w.asked() && time.Since(w.since) >= statusEvery }

func (w *modelWait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	*w = modelWait{}
}

// waits begins and ends the wait for a model with the events of the run. On a
// terminal it ends with the first piece of a text, which is then seen to come, and
// begins again where nothing is seen: while a call is written, or before the next
// attempt. Elsewhere it ends with the whole answer.
func (t *textRun) waits(e event.Event) {
	switch d := e.Data.(type) {
	case event.ModelRequest:
		t.wait.stop()
		t.waitOn(e)
	case event.ModelRetry:
		t.waitOn(e)
		t.wait.retry, t.wait.call, t.wait.size = fmt.Sprintf("attempt %d of %d failed", d.Retry.Attempt, d.Retry.Attempts), "", 0
	case event.TextDelta, event.ReasoningDelta:
		if t.stderr.TTY {
			t.waitOver()
		}
	case event.ToolInputStart:
		t.waitOn(e)
		t.wait.call, t.wait.size = d.Tool, 0
	case event.ToolInputDelta:
		t.wait.size += int64(len(d.Text))
	case event.ModelResponse, event.RunFinished, event.RunResumed, event.ToolCall:
		t.waitOver()
	}
}

// waitOn begins or continues the wait. A reader that attached later has not seen the
// start of the wait, but the event has its time.
func (t *textRun) waitOn(e event.Event) {
	if t.wait.asked() {
		return
	}
	t.wait.since = t.since(e)
	t.wait.timer = time.AfterFunc(t.beat(), t.waited)
}

func (t *textRun) waitOver() {
	if t.wait.asked() {
		t.wait.stop()
		t.clear()
	}
}

// beat is the time between two status lines.
func (t *textRun) beat() time.Duration {
	if t.stderr.Live {
		return statusEvery
	}
	return heartbeatEvery
}

// waited is the call of the timer.
func (t *textRun) waited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wait.asked() {
		return
	}
	if t.stderr.Live {
		if t.wait.call != "" {
			t.endLine() // the text before the call is complete
		}
		t.draw()
	} else {
		t.say(beside(t.waitText(), t.figures(), 0) + "\n")
	}
	t.wait.timer = time.AfterFunc(t.beat(), t.waited)
}

// waitText is what is waited for. The time comes first: it is what a narrow terminal
// keeps.
func (t *textRun) waitText() string {
	text := "waiting " + time.Since(t.wait.since).Truncate(time.Second).String() + " for "
	if t.wait.call != "" {
		text += "a call of " + Line(t.wait.call) + " (" + Size(t.wait.size) + ") of "
	}
	text += "model " + Line(t.by)
	if t.wait.retry != "" {
		text += " · " + t.wait.retry
	}
	return text
}
