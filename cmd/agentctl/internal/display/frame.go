package display

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// header shows what runs, on which files, and with which isolation.
func header(s *Screen, name string, d event.RunStarted) string {
	lines := []string{
		headKey(s, "run") + s.paint(bold, "run/"+name),
		headKey(s, "agent") + Line(d.Agent) + ", " + modelName(d.Model),
		headKey(s, "workspace") + workspace(d.Workspace),
		headKey(s, "isolation") + isolation(d),
	}
	if len(d.Files) > 0 {
		lines = append(lines, headKey(s, "attached")+attached(d.Files))
	}
	return headLines(s, lines) + unheld(s, d.Isolation, d.OuterIsolation, d.Tools, d.ToolIsolation)
}

func headKey(s *Screen, text string) string { return s.paint(dim, pad(text, 9)) + "  " }

func headLines(s *Screen, lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(cut(l, s.width()) + "\n")
	}
	return b.String()
}

// modelName is the model that answers, by the name of the manifest and the provider's.
func modelName(m message.ModelRef) string {
	return "model " + Line(m.Name) + " (" + strings.TrimSpace(Line(m.Provider)+" "+Line(m.Model)) + ")"
}

// attached lists the files that go with the prompt.
func attached(files []message.File) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = Line(f.Filename) + " (" + Line(f.Mime) + ")"
	}
	return strings.Join(names, ", ")
}

// unheld warns of tools without isolation.
func unheld(s *Screen, level, outer string, tools []string, others map[string]string) string {
	if outer != "" || len(tools) == 0 {
		return ""
	}
	if level == "None" {
		return s.paint(yellow, "warning:") + " no sandbox: what runs here runs as you and may do what you may do\n"
	}
	var open []string
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if others[name] == "None" {
			open = append(open, Line(name))
		}
	}
	if len(open) == 0 {
		return ""
	}
	return s.paint(yellow, "warning:") + " no sandbox for " + strings.Join(open, ", ") + ": what runs there runs as you and may do what you may do\n"
}

func workspace(w event.Workspace) string {
	if g := w.Git; g != nil {
		return "a clone of " + Line(g.URL) + " at " + Line(g.Commit[:min(12, len(g.Commit))])
	}
	switch w.Strategy {
	case "InPlace":
		return Line(w.Source) + ", in place: changes are made there at once"
	case "Empty":
		return "a new empty folder"
	}
	return "a copy of " + Line(w.Source)
}

// isolation is the level at which tools run, and the names of those that run at
// another one.
func isolation(d event.RunStarted) string {
	text := Line(d.Isolation)
	levels := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(d.ToolIsolation)) {
		level := Line(d.ToolIsolation[name])
		levels[level] = append(levels[level], Line(name))
	}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		text += "; " + level + ": " + strings.Join(levels[level], ", ")
	}
	if d.OuterIsolation == "container" { // any other word refuses the run
		text += ", inside a container as AGENTCTL_OUTER_ISOLATION declares"
	}
	return text
}

// turned shows with what a run goes on that had ended, and what is declared otherwise.
func turned(s *Screen, name string, run *view.Run, t *event.Turn) string {
	now := &run.Started
	lines := []string{
		headKey(s, "run") + s.paint(bold, "run/"+name) + ", turn " + count(int64(t.Number)),
		headKey(s, "agent") + Line(t.Agent) + ", " + modelName(t.Model),
		headKey(s, "workspace") + kept(now.Workspace, t.Fresh),
		headKey(s, "isolation") + isolation(*now),
	}
	if len(t.Files) > 0 {
		lines = append(lines, headKey(s, "attached")+attached(t.Files))
	}
	for _, text := range t.Changed {
		lines = append(lines, headKey(s, "changed")+Line(text))
	}
	return headLines(s, lines) + unheld(s, now.Isolation, now.OuterIsolation, t.Tools, t.ToolIsolation)
}

// kept are the files of a run that goes on.
func kept(w event.Workspace, fresh bool) string {
	if w.Strategy == "InPlace" || fresh {
		return workspace(w)
	}
	return workspace(w) + ", as the turn before has left it"
}

// resumed shows that a run continues, and from where.
func resumed(s *Screen, name string, run *view.Run, d event.RunResumed) string {
	if d.Turn != nil {
		return turned(s, name, run, d.Turn)
	}
	from := "from its beginning"
	if run.Steps > 0 {
		from = "after step " + count(int64(run.Steps))
	}
	return cut("resuming "+s.paint(bold, "run/"+Line(run.ID))+" "+from, s.width()) + "\n" + unheld(s, d.Isolation, d.OuterIsolation, run.Started.Tools, run.Started.ToolIsolation)
}

// retry shows that a model request is sent again.
func retry(r message.Retry) string {
	wait := time.Duration(r.WaitMillis) * time.Millisecond
	next := "again in " + duration(wait)
	switch {
	case r.Fallback != "" && wait > 0:
		next = "model " + Line(r.Fallback) + " is asked instead in " + duration(wait)
	case r.Fallback != "":
		next = "model " + Line(r.Fallback) + " is asked instead"
	case wait <= 0:
		next = "again at once"
	}
	return fmt.Sprintf("model request %d of %d failed (%s)%s; %s", r.Attempt, r.Attempts, Line(r.Class), because(r.Error), next)
}

// pruned shows that old tool output is no longer sent to the model.
func pruned(s *Screen, d event.ContextPrune) string {
	return contextLine(s, "left out the output of "+plural(int64(len(d.Calls)), "old call"), d.Before, d.After)
}

// compacted shows that a summary replaces the conversation so far.
func compacted(s *Screen, d event.ContextCompaction) string {
	what := "summed up the conversation"
	if d.Overflow {
		what += ", which was too long for the model"
	}
	took := duration(time.Duration(d.DurationMs)*time.Millisecond) + ", " + cost(d.Cost)
	return contextLine(s, what+" ("+took+")", d.Before, d.After)
}

func contextLine(s *Screen, what string, before, after int64) string {
	line := "  " + pad("context", 8) + "  " + what + ": " + count(before) + " → " + count(after) + " tokens"
	return s.paint(dim, cut(line, s.width())) + "\n"
}

// refusedConnection shows that a connection of a tool was refused.
func refusedConnection(d event.EgressConnection) string {
	where := Line(d.Host) + ":" + strconv.Itoa(d.Port)
	return "network: " + Line(strings.Join(d.Tools, ", ")) + " was refused a connection to " + where + " (" + Line(d.Rule) + ")"
}

// mostFiles is how many changed files a footer names: a build leaves thousands,
// and the answer must not scroll away.
const mostFiles = 30

// footer shows the result of a run, its cost and the next command.
func footer(s *Screen, run *view.Run, journal string, p Place) string {
	var b strings.Builder
	if files := run.Changes.Files; len(files) > 0 {
		b.WriteString(s.paint(dim, plural(int64(len(files)+run.Changes.Omitted), "changed file")) + "\n")
		b.WriteString(fileList(s, files[:min(len(files), mostFiles)]))
		if more := len(files) + run.Changes.Omitted - mostFiles; more > 0 {
			b.WriteString(s.paint(dim, "  and "+count(int64(more))+" more"+allFiles(run, p)) + "\n")
		}
	}
	if a := run.Applied; a != nil {
		b.WriteString(s.paint(dim, "applied to ") + Line(a.Source) + "\n")
	}
	f := run.Finished
	if f == nil {
		return b.String() + s.paint(red, "error:") + " the run has no end in its journal: " + Line(journal) + "\n" +
			s.paint(cyan, "hint:") + " continue with: " + p.goOn(run.ID) + "\n"
	}
	if f.ExitCode != 0 {
		b.WriteString(failure(s, f))
	}
	b.WriteString(refusals(s, run))
	b.WriteString(summary(s, run) + "\n")
	if !p.Away {
		b.WriteString(footKey(s, "journal") + Line(journal) + "\n")
	}
	for _, command := range follow(run, p) {
		b.WriteString(next(s, command))
	}
	return b.String()
}

// allFiles is the command that lists every changed file.
func allFiles(run *view.Run, p Place) string {
	if p.Away {
		return ""
	}
	return ": agentctl diff --stat" + named(run.ID, p.State)
}

func footKey(s *Screen, text string) string { return s.paint(dim, pad(text, 7)) + "  " }

// next names a command to continue with.
func next(s *Screen, command string) string {
	return footKey(s, "next") + s.paint(cyan, command) + "\n"
}

// Recorded says which cassette holds the run that has ended, by the command that
// reads it.
func Recorded(s *Screen, file string) { s.print(next(s, "agentctl replay "+shellWord(file))) }

func summary(s *Screen, run *view.Run) string {
	f := run.Finished
	phase := Line(f.Phase)
	head := s.paint(green, phase)
	if f.ExitCode != 0 {
		head = s.paint(red, phase+" ("+Line(f.Reason)+fmt.Sprintf(", exit code %d)", f.ExitCode))
	}
	if n := len(run.Turns); n > 1 {
		return head + " · " + turnFigures(run) + " · turn " + count(int64(n)) + ", in all " + plural(int64(f.Steps), "step") + ", " + plural(f.Tokens.Total(), "token") + ", " + cost(f.Cost)
	}
	t := f.Tokens
	tokens := fmt.Sprintf("%s (%s in, %s out)", plural(t.Total(), "token"), count(t.Total()-t.Output), count(t.Output))
	if run.Uncounted {
		t = t.Add(run.Estimated)
		tokens = fmt.Sprintf("about %s (estimated: the provider does not count them all)", plural(t.Total(), "token"))
	}
	return strings.Join([]string{
		head, plural(int64(f.Steps), "step"), tokens, cost(f.Cost),
		duration(time.Duration(f.DurationMs) * time.Millisecond),
	}, " · ")
}

// turnFigures are the steps, tokens, cost and time of the newest turn.
func turnFigures(run *view.Run) string {
	t := run.Turn()
	tokens := t.Tokens.Add(t.Estimated)
	var spent *message.Cost
	if !t.Unpriced && !t.Uncounted && run.Finished.Cost != nil {
		spent = &t.Cost
	}
	return strings.Join([]string{plural(int64(run.TurnSteps()), "step"), plural(tokens.Total(), "token"), cost(spent), duration(run.TurnWorked(run.EndTime))}, " · ")
}

// mostRefusals is how many refused calls are listed at the end of a run.
const mostRefusals = 10

// refusals names each call that did not run because it was refused, and the rule
// that refused it, by its file and line where these are known.
func refusals(s *Screen, run *view.Run) string {
	var b strings.Builder
	n := 0
	for _, m := range run.Said() {
		for _, c := range m.Calls() {
			if !c.Refused() {
				continue
			}
			if n++; n > mostRefusals {
				continue
			}
			b.WriteString(cut(footKey(s, "refused")+refusal(c), 0) + "\n")
		}
	}
	if more := n - mostRefusals; more > 0 {
		b.WriteString(footKey(s, "refused") + "and " + count(int64(more)) + " more\n")
	}
	return b.String()
}

func refusal(c *message.ToolPart) string {
	text := Line(c.Tool)
	if about := title(c); about != "" {
		text += " " + about
	}
	d := c.Decision
	switch {
	case c.Result.Code == message.CodeRejected:
		text += " · rejected by a person, asked by "
	case d.Action == message.Ask:
		text += " · not answered, asked by "
	default:
		text += " · denied by "
	}
	if text += Line(d.Rule); d.Source != "" {
		text += " (" + Line(d.Source) + ")"
	}
	return text
}

// failure shows why a run did not complete, and how to continue.
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

// follow lists the commands that work on the result of the run.
func follow(run *view.Run, p Place) []string {
	var next []string
	if run.Finished.Phase == view.Suspended {
		for _, call := range run.PendingApprovals {
			next = append(next, p.Approve(run.ID, call))
		}
		next = append(next, p.goOn(run.ID))
	}
	unsent := func(item view.Publication) bool { return !item.Published() }
	if run.Finished.Phase == view.Succeeded && !p.Away && slices.ContainsFunc(run.Publications, unsent) {
		next = append(next, "agentctl apply-changes"+named(run.ID, p.State)+" --publish -f FILE")
	}
	if len(run.Changes.Files) == 0 || p.Away {
		return next
	}
	next = append(next, "agentctl diff"+named(run.ID, p.State))
	if w := run.Started.Workspace; run.Applied == nil && w.Apply != "Never" && w.Git == nil && w.Source != "" && w.Strategy != "InPlace" && run.Finished.Phase == view.Succeeded {
		next = append(next, "agentctl apply-changes"+named(run.ID, p.State))
	}
	return next
}

// Resume is the command that continues a run, or prints its result again.
func Resume(id, state string) string { return "agentctl resume" + named(id, state) }

// named are the arguments by which a command finds a run.
func named(id, state string) string {
	if state == "" {
		return " run/" + Line(id)
	}
	return " run/" + Line(id) + " --state " + shellWord(state)
}

// shellWord quotes a word for a shell where it has to be.
func shellWord(word string) string {
	word = Line(word)
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
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
