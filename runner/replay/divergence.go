package replay

import (
	"fmt"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
)

// Divergence is the first place where a replay is not what was recorded.
type Divergence struct { //nolint:errname // it is what a replay finds; that it is an error, too, comes second
	// File and the line in it with the recorded value; 0 if it is not a single line.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Step, and the call and its tool; zero if there is none.
	Step int    `json:"step,omitempty"`
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// What differs, in words, then what was recorded and what is now.
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

// Error is the position and the difference in one line.
func (d *Divergence) Error() string {
	var b strings.Builder
	if at := d.Where(); at != "" {
		b.WriteString(at + ": ")
	}
	fmt.Fprintf(&b, "%s: recorded %s, now %s", d.What, d.Recorded, d.Now)
	fmt.Fprintf(&b, " (%s)", d.Place())
	return b.String()
}

// Where names the step and the call.
func (d *Divergence) Where() string {
	var at []string
	if d.Step > 0 {
		at = append(at, fmt.Sprintf("step %d", d.Step))
	}
	switch {
	case d.Call != "" && d.Tool != "":
		at = append(at, fmt.Sprintf("call %s (%s)", d.Call, d.Tool))
	case d.Call != "":
		at = append(at, "call "+d.Call)
	}
	return strings.Join(at, ", ")
}

// Place is the file and line, as short as it can be shown.
func (d *Divergence) Place() string {
	if d.Line == 0 {
		return filepath.Base(d.File)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(d.File), d.Line)
}

// Unwrap gives the divergence its reason.
func (d *Divergence) Unwrap() error {
	return reason.New(reason.ReplayDiverged, "%s: recorded %s, now %s", d.What, d.Recorded, d.Now).WithHint("%s", d.hint())
}

func (d *Divergence) hint() string {
	return "if that is how it is meant to be, record the run again: the same command with --update"
}

// diverge ends the replay, unless it has ended already. The caller holds mu.
func (p *Player) diverge(d *Divergence) *Divergence {
	if p.diverged == nil {
		d.File = p.file
		p.diverged = d
		p.moved()
	}
	return p.diverged
}

// Diverged returns the divergence so far, nil if there is none.
func (p *Player) Diverged() *Divergence {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.diverged
}

// at is a divergence at a recorded event.
func (p *Player) at(e *entry, what, recorded, now string) *Divergence {
	return &Divergence{Line: e.Line, Step: e.step, Call: e.Call, Tool: p.tool(e.Call), What: what, Recorded: recorded, Now: now}
}

// tool is what the recording calls the tool of a call.
func (p *Player) tool(call string) string {
	tool := ""
	if call == "" {
		return tool
	}
	for i := range p.tape.entries {
		e := &p.tape.entries[i]
		if e.Call != call {
			continue
		}
		switch d := e.Data.(type) {
		case event.ToolInputStart:
			tool = d.Tool
		case event.ToolInputEnd:
			tool = d.Tool
		}
	}
	return tool
}

// surplus is an event that the recording does not have.
func (p *Player) surplus(e event.Event) *Divergence {
	last := &p.tape.entries[len(p.tape.entries)-1]
	if left := p.tape.left(); left != nil {
		last = left
	}
	d := p.at(last, "another course", describe(last.Event), describe(e))
	if e.Call != "" {
		d.Call, d.Tool = e.Call, p.tool(e.Call)
	}
	return d
}

// ended is a run that ends where the recorded one went on.
func (p *Player) ended(left *entry, f event.RunFinished) *Divergence {
	now := "the run ends: " + f.Reason
	if f.Message != "" {
		now += " (" + f.Message + ")"
	}
	return p.at(left, "the run ends early", describe(left.Event), now)
}

// missing is a recorded event that did not come.
func (p *Player) missing(left *entry) *Divergence {
	return p.at(left, "something did not happen", describe(left.Event), "nothing within "+p.Patience.String())
}

// describe summarises an event in a few words.
func describe(e event.Event) string {
	switch d := e.Data.(type) {
	case event.RunFinished:
		return "the run ends: " + d.Reason
	case event.StepStart:
		return fmt.Sprintf("step %d begins", d.Step)
	case event.StepFinish:
		return fmt.Sprintf("step %d ends", d.Step)
	case event.ModelRequest:
		if d.Summary {
			return "a summary is asked for"
		}
		return "the model is asked"
	case event.ModelResponse:
		return "the model has answered"
	case event.UserMessage:
		return "the model is told: " + quoted(d.Text)
	case event.MessageReceived:
		return "a message is received: " + quoted(d.Text)
	case event.ToolInputStart:
		return "the model calls " + d.Tool
	case event.ToolInputEnd:
		return "the call of " + d.Tool + " is checked"
	case event.PolicyDecision:
		return fmt.Sprintf("the decision %s by rule %s", d.Action, d.Rule)
	case event.ApprovalRequested:
		return "somebody is asked for an approval"
	case event.ApprovalDecided:
		if d.EndRun {
			return "the approval is " + string(d.State) + " and the run is ended"
		}
		return "the approval is " + string(d.State)
	case event.QuestionAsked:
		return "the call asks: " + quoted(d.Text)
	case event.QuestionAnswered:
		return "the question is " + string(d.State)
	case event.ToolCall:
		return d.Tool + " runs"
	case event.ToolResult:
		return "a result: " + quoted(d.Text)
	case event.ToolError:
		return fmt.Sprintf("the error %s: %s", d.Code, quoted(d.Text))
	case event.ContextPrune:
		return "old output is left out of the conversation"
	case event.ContextCompaction:
		return "a summary stands for the conversation"
	case event.Warning:
		return "a warning: " + quoted(d.Message)
	}
	return "the event " + string(e.Type())
}

// mostQuoted bounds a text that is named in passing.
const mostQuoted = 80

func quoted(text string) string {
	return fmt.Sprintf("%q", clip(text, mostQuoted)) // with its line breaks: a first line is not all of it
}

// clip keeps the first runes of a text.
func clip(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// Drift is a difference in what a run begins with, before the model is asked.
type Drift struct{ What, Recorded, Now string }

// Drifted ends a replay before it begins.
func (p *Player) Drifted(d Drift) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, is := Around(d.Recorded, d.Now)
	for i := range p.tape.entries {
		if e := &p.tape.entries[i]; e.Type() == event.TypeModelRequest {
			_ = p.diverge(p.at(e, d.What, was, is))
			return
		}
	}
}

// Calls is the number of recorded calls.
func (p *Player) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tape.lanes)
}
