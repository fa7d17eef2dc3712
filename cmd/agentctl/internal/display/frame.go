package display

import (
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// header says what runs, on which files, and how tightly it is held.
func header(s *Screen, id string, d event.RunStarted) string {
	key := func(text string) string { return s.paint(dim, pad(text, 9)) + "  " }
	model := Line(d.Model.Provider)
	if d.Model.Model != "" {
		model += " " + Line(d.Model.Model)
	}
	lines := []string{
		key("run") + s.paint(bold, "run/"+Line(id)),
		key("agent") + Line(d.Agent) + ", model " + Line(d.Model.Name) + " (" + strings.TrimSpace(model) + ")",
		key("workspace") + workspace(d.Workspace),
		key("isolation") + isolation(d),
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(cut(l, s.width()) + "\n")
	}
	if d.Isolation == "None" && d.OuterIsolation == "" {
		b.WriteString(s.paint(yellow, "warning:") + " no sandbox: the tools run as you and may do what you may do\n")
	}
	return b.String()
}

func workspace(w event.Workspace) string {
	switch w.Strategy {
	case "InPlace":
		return Line(w.Source) + ", in place: changes are made there at once"
	case "Empty":
		return "a new empty folder"
	case "Worktree":
		return "a worktree of " + Line(w.Source)
	}
	return "a copy of " + Line(w.Source)
}

func isolation(d event.RunStarted) string {
	if d.OuterIsolation != "" {
		return Line(d.Isolation) + ", inside a " + Line(d.OuterIsolation) + " as AGENTCTL_OUTER_ISOLATION declares"
	}
	return Line(d.Isolation)
}

// retry says that a model request is sent again.
func retry(r message.Retry) string {
	wait := time.Duration(r.WaitMillis) * time.Millisecond
	return fmt.Sprintf("model request %d of %d failed (%s)%s; again in %s",
		r.Attempt, r.Attempts, Line(r.Class), because(r.Error), duration(wait))
}

// footer says what a run came to, what it cost and what to do next.
func footer(s *Screen, run *view.Run, journal, state string) string {
	var b strings.Builder
	if files := run.Changes.Files; len(files) > 0 {
		b.WriteString(s.paint(dim, plural(int64(len(files)), "changed file")) + "\n")
		b.WriteString(fileList(s, files))
	}
	f := run.Finished
	if f == nil {
		return b.String() + s.paint(red, "error:") + " the run has no end in its journal: " + Line(journal) + "\n"
	}
	if f.ExitCode != 0 {
		b.WriteString(failure(s, f))
	}
	b.WriteString(summary(s, f) + "\n")
	key := func(text string) string { return s.paint(dim, pad(text, 7)) + "  " }
	b.WriteString(key("journal") + Line(journal) + "\n")
	for _, next := range follow(run, state) {
		b.WriteString(key("next") + s.paint(cyan, next) + "\n")
	}
	return b.String()
}

func summary(s *Screen, f *event.RunFinished) string {
	head := s.paint(green, f.Phase)
	if f.ExitCode != 0 {
		head = s.paint(red, f.Phase+" ("+Line(f.Reason)+fmt.Sprintf(", exit code %d)", f.ExitCode))
	}
	t := f.Tokens
	tokens := fmt.Sprintf("%s (%s in, %s out)", plural(t.Total(), "token"), count(t.Total()-t.Output), count(t.Output))
	return strings.Join([]string{
		head, plural(int64(f.Steps), "step"), tokens, cost(f.Cost),
		duration(time.Duration(f.DurationMs) * time.Millisecond),
	}, " · ")
}

// failure says why a run did not complete, and how to go on.
func failure(s *Screen, f *event.RunFinished) string {
	text := Line(f.Message)
	if text == "" {
		text = "the run ended"
	}
	out := s.paint(red, "error:") + " " + Line(f.Reason) + ": " + text + "\n"
	if hint := Line(f.Hint); hint != "" {
		out += s.paint(cyan, "hint:") + " " + hint + "\n"
	}
	return out
}

// follow lists the commands that take up what the run has left.
func follow(run *view.Run, state string) []string {
	if len(run.Changes.Files) == 0 {
		return nil
	}
	end := " run/" + Line(run.ID)
	if state != "" {
		end += " --state " + Line(state)
	}
	next := []string{"agentctl diff" + end}
	if w := run.Started.Workspace; w.Source != "" && w.Strategy != "InPlace" && run.Finished.Phase == view.Succeeded {
		next = append(next, "agentctl apply-changes"+end)
	}
	return next
}

// fileList is one line a file: A, M or D and the path.
func fileList(s *Screen, files []event.FileChange) string {
	var b strings.Builder
	for _, f := range files {
		letter, st := changeLetter(f.Change)
		b.WriteString("  " + s.paint(st, letter) + " " + Line(f.Path) + "\n")
	}
	return b.String()
}

func changeLetter(change string) (string, style) {
	switch change {
	case "added":
		return "A", green
	case "deleted":
		return "D", red
	}
	return "M", yellow
}
