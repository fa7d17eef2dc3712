package display

import (
	"fmt"

	"agentctl.dev/agentctl/api/message"
)

// PolicyReplay is what became of the calls of a run that were judged again.
type PolicyReplay struct {
	Run    string
	Judged int
	Flips  []FlippedCall
	// NotJudged are calls with the reason.
	NotJudged []SkippedCall
	// Judges are what has judged, a line each.
	Judges []string
}

// FlippedCall is a call about which another decision is made.
type FlippedCall struct {
	// Ref is run/ID/CALL, Call the tool and its arguments as JSON.
	Ref, Call string
	Step      int
	Was, Now  Ruling
}

// Ruling is a decision, with its rule as policy/rule and the place of that, or "".
type Ruling struct {
	Decision            message.Action
	Rule, Place, Reason string
}

// SkippedCall is a call that was not judged.
type SkippedCall struct {
	Call, Tool, Why string
	Step            int
}

// WriteText writes what flips, and the count, for a person.
func (p PolicyReplay) WriteText(s *Screen) error {
	for _, f := range p.Flips {
		s.print(s.paint(actionStyle(f.Was.Decision), Line(string(f.Was.Decision))) + " -> " + s.paint(actionStyle(f.Now.Decision), Line(string(f.Now.Decision))) +
			fmt.Sprintf("  step %d  ", f.Step) + s.paint(dim, Line(f.Ref)) + "\n")
		s.print("  " + s.fitting(Line(f.Call), 2) + "\n")
		f.Was.write(s, "was")
		f.Now.write(s, "now")
	}
	for _, c := range p.NotJudged {
		s.print(s.paint(yellow, "not judged:") + fmt.Sprintf(" %s %s, step %d: %s\n", Line(c.Tool), Line(c.Call), c.Step, Line(c.Why)))
	}
	s.print(s.paint(dim, "by "+decidedBy(p.Judges)) + "\n")
	text := fmt.Sprintf("%s of run/%s judged again: ", plural(int64(p.Judged), "call"), Line(p.Run))
	switch {
	case p.Judged == 0:
		text = "no call of run/" + Line(p.Run) + " could be judged again"
	case len(p.Flips) == 0:
		text += "nothing flips"
	case len(p.Flips) == 1:
		text += "1 flips"
	default:
		text += fmt.Sprintf("%d flip", len(p.Flips))
	}
	if n := len(p.NotJudged); n > 0 && p.Judged > 0 {
		text += fmt.Sprintf(", %d not judged", n)
	}
	s.print(text + "\n")
	return s.Err()
}

func (r Ruling) write(s *Screen, when string) {
	line := "  " + when + " " + Line(string(r.Decision)) + " by " + decider(r.Rule) + s.placed(r.Place)
	if r.Reason != "" {
		line += ": " + Line(r.Reason)
	}
	s.print(line + "\n")
}

func decidedBy(judges []string) string {
	if len(judges) == 0 {
		return "the defaults: no policy concerns its calls"
	}
	text := ""
	for i, j := range judges {
		if i > 0 {
			text += ", "
		}
		text += Line(j)
	}
	return text
}

// fitting is a line cut to the width of a terminal behind an indent; elsewhere it is whole.
func (s *Screen) fitting(line string, indent int) string {
	if w := s.width(); s.Live && w > indent {
		return cut(line, w-indent)
	}
	return line
}
