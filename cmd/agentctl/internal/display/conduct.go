package display

import (
	"fmt"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// mostDescribed is how many calls and files a description of a run lists.
const mostDescribed = 100

// conduct writes what a run asked for and what became of it: its calls with the rules that
// refused some, the files it has changed, and the evidence that its agent declares.
func conduct(s *Screen, run *view.Run) {
	turns(s, run)
	calls(s, run)
	changed(s, run)
	if f := run.Finished; f != nil && len(f.Evidence) > 0 {
		rows := [][]string{{"  NAME", "MET", "MESSAGE"}}
		for _, e := range f.Evidence {
			rows = append(rows, []string{"  " + Line(e.Name), met(s, e), dash(cut(Line(e.Message), maxWhy))})
		}
		s.print(s.paint(bold, "Evidence:") + "\n" + table(rows))
	}
}

func met(s *Screen, e event.Evidence) string {
	if e.Met {
		return s.paint(green, "yes")
	}
	return s.paint(red, "no")
}

// turns are those of a conversation that went on; a run of one turn has nothing to add.
func turns(s *Screen, run *view.Run) {
	all := run.Result("").Turns
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"  TURN", "AGENT", "MODEL", "PHASE", "REASON", "STEPS", "TOKENS", "COST", "PROMPT"}}
	for _, t := range all[max(0, len(all)-mostDescribed):] {
		tokens := t.Tokens.Input + t.Tokens.Output + t.Tokens.CacheRead + t.Tokens.CacheWrite
		rows = append(rows, []string{
			"  " + count(int64(t.Number)), Line(t.Agent), Line(t.Model), Line(t.Phase), dash(Line(t.Reason)), count(int64(t.Steps)), count(tokens), cost(t.Cost), cut(Line(t.Prompt), maxAbout),
		})
	}
	s.print(s.paint(bold, "Turns:") + "\n" + table(rows))
}

func calls(s *Screen, run *view.Run) {
	rows := [][]string{{"  CALL", "TOOL", "DECISION", "STATE", "TOOK", "ABOUT", "WHY"}}
	n := 0
	for _, m := range run.Messages {
		for _, c := range m.Calls() {
			if n++; n <= mostDescribed {
				rows = append(rows, callRow(s, c, run.Started.Workspace.Dir))
			}
		}
	}
	s.print(s.paint(bold, "Calls:"))
	if n == 0 {
		s.print("  none\n")
		return
	}
	s.print("\n" + table(rows))
	if more := n - mostDescribed; more > 0 {
		s.print(fmt.Sprintf("  and %s more: agentctl events %s\n", count(int64(more)), shellWord(run.ID)))
	}
}

// callRow is the row of a call.
func callRow(s *Screen, c *message.ToolPart, root string) []string {
	decision, took := "-", "-"
	if d := c.Decision; d != nil {
		decision = Line(string(d.Action))
	}
	if r := c.Result; r != nil && c.Start > 0 {
		took = duration(time.Duration(r.DurationMicros) * time.Microsecond)
	}
	says := cut(Line(why(c, message.Answer{}, root)), maxWhy)
	if d := c.Decision; d != nil && d.Source != "" && d.Action != message.Allow {
		says += " (" + Line(d.Source) + ")"
	}
	return []string{
		"  " + Line(c.CallID), Line(c.Tool), s.paint(decisionStyle(c), decision), s.paint(stateStyle(c), Line(string(c.State))), took,
		dash(cut(title(c), maxAbout)), dash(says),
	}
}

// maxAbout bounds, in cells, what a row says that a call is about.
const maxAbout = 60

func changed(s *Screen, run *view.Run) {
	files := run.Changes.Files
	s.print(s.paint(bold, "Changed:"))
	if len(files) == 0 {
		s.print("  nothing\n")
		return
	}
	if d := run.Changes.Summary; d != nil {
		s.print(fmt.Sprintf("  %s, %s added, %s removed", plural(int64(d.Files), "file"), plural(int64(d.LinesAdded), "line"), plural(int64(d.LinesRemoved), "line")))
	}
	s.print("\n" + fileList(s, files[:min(len(files), mostDescribed)]))
	if more := len(files) + run.Changes.Omitted - mostDescribed; more > 0 {
		s.print(fmt.Sprintf("  and %s more: agentctl diff --stat %s\n", count(int64(more)), shellWord(run.ID)))
	}
}
