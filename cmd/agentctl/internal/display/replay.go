package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/replay"
)

// Replay shows a run that is executed again, as the run itself was shown.
type Replay struct {
	Renderer
	stderr *Screen
	file   string
	text   bool
}

// NewReplay returns the renderer of a replay of a file, in a format of "replay -o".
func NewReplay(format string, stdout, stderr *Screen, file string) *Replay {
	return &Replay{
		Renderer: NewRun(format, stdout, stderr, RunOptions{Replay: true}),
		stderr:   stderr, file: file, text: format == FormatText,
	}
}

// Finish shows how the replay ended, and on stderr what was recorded and what is
// now where it went another way.
func (r *Replay) Finish(run *view.Run, d *replay.Divergence) error {
	if d != nil && r.text {
		shown := *run
		f := *run.Finished
		f.Message = strings.TrimPrefix(d.Where()+": "+d.What, ": ") + " (" + d.Place() + ")"
		shown.Finished = &f
		run = &shown
		key := func(text string) string { return r.stderr.paint(dim, pad(text, 8)) + "  " }
		r.stderr.print(key("recorded") + Line(d.Recorded) + "\n" + key("now") + Line(d.Now) + "\n")
	}
	return r.Renderer.Finish(run, r.file)
}

// replayFooter shows the result of a replay. There is no run to continue.
func replayFooter(s *Screen, run *view.Run, file string) string {
	var b strings.Builder
	f := run.Finished
	if f.ExitCode != 0 {
		b.WriteString(failure(s, f))
	}
	b.WriteString(summary(s, run) + "\n" + s.paint(dim, pad("replay", 7)) + "  " + Line(file) + "\n")
	return b.String()
}

// replayHeader shows what is executed again.
func replayHeader(s *Screen, e event.Event, d event.RunStarted) string {
	lines := []string{
		headKey(s, "replaying") + s.paint(bold, "run/"+Line(e.Run)),
		headKey(s, "date") + e.Time.UTC().Format("2006-01-02 15:04:05 UTC"),
		headKey(s, "agent") + Line(d.Agent) + ", " + modelName(d.Model),
	}
	if len(d.Files) > 0 {
		lines = append(lines, headKey(s, "attached")+attached(d.Files))
	}
	return headLines(s, lines)
}

// WriteUpdate shows what a new recording changes: as one object, else as text.
func WriteUpdate(format string, s *Screen, c *replay.Change) error {
	if format != FormatText {
		return writeJSON(s, c)
	}
	s.print(updateText(s, c))
	return s.Err()
}

func updateText(s *Screen, c *replay.Change) string {
	var b strings.Builder
	head := Line(c.File) + ": "
	switch {
	case !c.Written:
		head += "left as it was"
	case c.Same:
		head += "recorded again; nothing differs"
	default:
		head += "recorded again"
	}
	b.WriteString(head + "\n")
	row := func(what, was, is string) {
		if was != is {
			b.WriteString("  " + pad(what, 7) + "  " + was + " → " + is + "\n")
		}
	}
	row("reason", Line(c.Reason.Recorded), Line(c.Reason.Now))
	row("steps", fmt.Sprint(c.Steps.Recorded), fmt.Sprint(c.Steps.Now))
	row("tokens", count(c.Tokens.Recorded), count(c.Tokens.Now))
	row("cost", cost(c.Cost.Recorded), cost(c.Cost.Now))
	for _, d := range []struct{ what, diff string }{{"calls", c.Calls}, {"answer", c.Output}} {
		if d.diff != "" {
			b.WriteString("  " + d.what + "\n" + paintDiff(s, d.diff))
		}
	}
	return b.String()
}

// paintDiff shows a unified diff without its two lines of file names.
func paintDiff(s *Screen, diff string) string {
	var b strings.Builder
	head := true
	for line := range strings.Lines(diff) {
		head = head && !strings.HasPrefix(line, "@@")
		if head {
			continue
		}
		st := style("")
		if line = diffLine(line); strings.HasPrefix(line, "+") {
			st = green
		} else if strings.HasPrefix(line, "-") {
			st = red
		}
		b.WriteString("    " + s.paint(st, line) + "\n")
	}
	return b.String()
}
