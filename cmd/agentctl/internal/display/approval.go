package display

import (
	"bytes"
	"io"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// Waiting is a call that waits for an approval.
type Waiting struct {
	Ref, Agent, State string
	// Left is the answer that a resume will take, "" is none.
	Left      string
	AskedAt   time.Time
	ExpiresAt *time.Time
	// Call writes everything about the call; nothing in it is cut.
	Call interface{ Write(w io.Writer) error }
	// Answer and Resume are the commands that follow. Resume may be none.
	Answer, Resume string
}

// WaitingList shows calls that wait, each in full.
func WaitingList(s *Screen, calls []Waiting) error {
	if len(calls) == 0 {
		return Text(s, "no call waits for an approval")
	}
	var b strings.Builder
	for i := range calls {
		c := &calls[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.paint(bold, Line(c.Ref)) + "  agent " + Line(c.Agent) + ", " + waits(c) + "\n")
		var call bytes.Buffer
		if err := c.Call.Write(&call); err != nil {
			return err
		}
		b.WriteString(Clean(call.String()))
		b.WriteString("  " + s.paint(cyan, c.Answer) + "\n")
		if c.State != "Waiting" && c.Resume != "" {
			b.WriteString("  " + s.paint(cyan, c.Resume) + "\n")
		}
	}
	s.print(b.String())
	return s.Err()
}

func waits(c *Waiting) string {
	since := "asked " + c.AskedAt.Local().Format(time.DateTime)
	switch {
	case c.Left != "":
		return strings.ToLower(c.State) + ", " + since + ", " + c.Left + " since: a resume takes it"
	case c.State != "Waiting":
		return strings.ToLower(c.State) + ", " + since
	case c.ExpiresAt != nil:
		return since + ", until " + c.ExpiresAt.Local().Format(time.TimeOnly)
	}
	return since
}

// Answered is an answer to a call.
type Answered struct {
	Ref, Tool, State string
	// Taken says that the run has it; else Next is the command that gives it, ""
	// where none is needed.
	Taken bool
	Next  string
	// Answer to the question of a running call; nil for an approval.
	Answer *string
	// Policy is what is approved for always, as a manifest.
	Policy string
	// Object is the same for programs.
	Object any
}

// WriteText says what became of the answer; a policy is all of stdout.
func (a Answered) WriteText(stdout, stderr *Screen) error {
	state := Line(a.State)
	if a.Answer != nil {
		state = "answered"
	}
	text := state + " " + Line(a.Tool) + " of " + Line(a.Ref) + "\n"
	if !a.Taken && a.Next == "" {
		text += "its control plane continues it\n"
	} else if !a.Taken {
		text += "continue with: " + stderr.paint(cyan, a.Next) + "\n"
	}
	if a.Policy == "" {
		return Text(stdout, text)
	}
	stderr.print(text)
	return Text(stdout, Clean(a.Policy))
}

// WriteJSON writes the answer as an object.
func (a Answered) WriteJSON(s *Screen) error { return writeJSON(s, a.Object) }

// Object writes a value as indented JSON.
func Object(s *Screen, v any) error { return writeJSON(s, v) }

// AnswerQuestion is the command that answers the question of a running call.
func AnswerQuestion(approve string) string { return approve + " --answer TEXT" }

// Approve is the command that answers a call.
func Approve(ref, state string) string {
	command := "agentctl approve " + shellWord(ref)
	if state != "" {
		command += " --state " + shellWord(state)
	}
	return command
}

// ApproveObject is the command that answers a call of a control plane.
func ApproveObject(name, context, namespace string) string {
	return "agentctl approve " + shellWord(name) + at(context, namespace)
}

// DescribeApproval is the command that says what has become of an answer.
func DescribeApproval(name, context, namespace string) string {
	return "agentctl describe approval " + shellWord(name) + at(context, namespace)
}

func at(context, namespace string) (flags string) {
	if context != "" {
		flags += " --context " + shellWord(context)
	}
	if namespace != "" {
		flags += " -n " + shellWord(namespace)
	}
	return flags
}

// inquired shows that a running call asks a person, and how to answer.
func inquired(s *Screen, e event.Event, p Place, tool string, d event.QuestionAsked) string {
	line := "  " + s.paint(yellow, "question") + "  " + Line(tool) + "  " + Line(d.Text)
	if d.ExpiresAt > 0 {
		line += s.paint(dim, " · until "+time.UnixMilli(d.ExpiresAt).Local().Format(time.TimeOnly))
	}
	return fit(line, s.width()) + "\n            " + s.paint(cyan, AnswerQuestion(p.Approve(e.Run, e.Call))) + "\n"
}

// asked says that a run waits for an answer, and how to give it.
func asked(s *Screen, e event.Event, p Place, about string, d event.ApprovalRequested) string {
	line := "  " + s.paint(yellow, "waiting") + "   " + Line(d.Tool) + "  " + about
	if d.ExpiresAt > 0 {
		line += s.paint(dim, " · until "+time.UnixMilli(d.ExpiresAt).Local().Format(time.TimeOnly))
	}
	return fit(line, s.width()) + "\n            " + s.paint(cyan, p.Approve(e.Run, e.Call)) + "\n"
}
