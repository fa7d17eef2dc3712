package display

import (
	"io"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// OnTerminal is a Screen of a terminal that something else writes to. A carriage return with
// what erases a line takes back the line that is not complete.
func OnTerminal(w io.Writer, columns func() int, mode string, getenv func(string) string) *Screen {
	return &Screen{w: w, TTY: true, Live: true, Color: useColor(mode, true, getenv), columns: func() int {
		if n := columns(); n >= 20 {
			return n
		}
		return 0
	}}
}

// Asked is a prompt as a chat shows it.
func Asked(s *Screen, text string) string {
	return s.paint(cyan, "> ") + strings.ReplaceAll(strings.TrimRight(Clean(text), "\n"), "\n", "\n  ") + "\n"
}

// Dimmed is a text that is not part of a conversation.
func Dimmed(s *Screen, text string) string { return s.paint(dim, text) }

// chatHeader is what a chat shows when its run begins.
func chatHeader(s *Screen, name string, d event.RunStarted) string {
	line := "run/" + name + " · " + Line(d.Agent) + ", " + modelName(d.Model) + " · " + workspace(d.Workspace)
	return cut(s.paint(dim, line), s.width()) + "\n" + unheld(s, d.Isolation, d.OuterIsolation, d.Tools, d.ToolIsolation)
}

// chatTurn is what a chat shows when a turn begins: what is declared otherwise.
func chatTurn(s *Screen, d event.RunResumed) string {
	var b strings.Builder
	if d.Turn != nil {
		for _, text := range d.Turn.Changed {
			b.WriteString(cut(s.paint(dim, Line(text)), s.width()) + "\n")
		}
	}
	return b.String()
}

// chatFooter is what a chat shows when a turn has ended.
func chatFooter(s *Screen, run *view.Run) string {
	f := run.Finished
	if f == nil {
		return s.paint(red, "error:") + " the turn has no end in its journal\n"
	}
	text := ""
	if f.ExitCode != 0 {
		text = failure(s, f)
	}
	line := turnFigures(run)
	if n := len(run.Changes.Files) + run.Changes.Omitted; n > 0 {
		line += " · " + plural(int64(n), "changed file") + ", /diff"
	}
	return text + cut(s.paint(dim, line), s.width()) + "\n"
}

// Spent is what a conversation has taken so far.
func Spent(run *view.Run) string {
	f := run.Finished
	if f == nil {
		return "nothing yet"
	}
	return plural(int64(len(run.Turns)), "turn") + " · " + plural(int64(f.Steps), "step") + " · " + plural(f.Tokens.Total(), "token") + " · " +
		cost(f.Cost) + " · " + duration(time.Duration(f.DurationMs)*time.Millisecond)
}

// Conversation shows what was said in a run, and what was done.
func Conversation(s *Screen, p Place, run *view.Run) error {
	var b strings.Builder
	if d := run.Started; run.ID != "" {
		b.WriteString(chatHeader(s, p.name(run.ID), d))
	}
	ends := map[*message.Message]*event.RunFinished{}
	for i, t := range run.Turns {
		last := len(run.Messages) - 1
		if i+1 < len(run.Turns) {
			last = run.PlaceOf(run.Turns[i+1]) - 1
		}
		if last >= 0 && t.Finished != nil && t.Finished.ExitCode != 0 {
			ends[run.Messages[last]] = t.Finished
		}
	}
	for _, m := range run.Messages {
		if m.Error != message.Void && !m.Summary {
			spoken(s, &b, run, m)
		}
		if f := ends[m]; f != nil {
			b.WriteString(failure(s, f))
		}
	}
	s.print(b.String())
	return s.Err()
}

// spoken is a message of a conversation, with its calls.
func spoken(s *Screen, b *strings.Builder, run *view.Run, m *message.Message) {
	md := markdown{s: s}
	for _, p := range m.Parts {
		switch {
		case p.Type == message.PartText && p.Text != "" && !p.Ignored && m.Role == message.RoleUser:
			if !p.Synthetic {
				b.WriteString(Asked(s, p.Text))
			}
		case p.Type == message.PartText && p.Text != "" && !p.Ignored:
			b.WriteString(md.whole(Clean(p.Text)))
		case p.Type == message.PartTool && p.Tool != nil:
			answer := message.Answer{}
			if a := run.Answer(p.Tool.CallID); a != nil {
				answer = a.Answer
			}
			b.WriteString(callLine(s, p.Tool, answer, run.Started.Workspace.Dir))
		}
	}
}
