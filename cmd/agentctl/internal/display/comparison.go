package display

import (
	"cmp"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/runs"
)

// Comparison is what differs between two runs, or two places of one.
type Comparison struct {
	*runs.Comparison
	// Stat lists the files in place of their diff.
	Stat bool
}

// WriteJSON writes the comparison as an object.
func (c Comparison) WriteJSON(s *Screen) error { return writeJSON(s, c.Comparison) }

// WriteText writes what differs for a person. What is before the diff is skipped by readers
// of unified diffs.
func (c Comparison) WriteText(s *Screen) error {
	s.print(c.side(s, "a", &c.A, &c.Usage.A) + c.side(s, "b", &c.B, &c.Usage.B))
	c.conversation(s)
	c.decisions(s)
	if why := c.unknown(); why != "" {
		s.print("\n" + s.paint(yellow, "the files are not compared:") + " " + why + "\n")
		return s.Err()
	}
	s.print("\n" + c.files() + "\n")
	for _, f := range c.Files.Unkept {
		s.print(s.paint(yellow, "not kept:") + " the content of " + Line(f) + "\n")
	}
	for _, dir := range c.Files.Unlisted {
		s.print(s.paint(yellow, "not listed:") + " what is in " + Line(cmp.Or(dir, ".")) + " could not be read\n")
	}
	if len(c.Files.Changed) == 0 {
		return s.Err()
	}
	change := Change{Files: c.Files.Changed, Diff: []byte(c.Files.Diff)}
	if c.Stat {
		return change.WriteStat(s)
	}
	return change.WriteDiff(s)
}

func (c Comparison) side(s *Screen, name string, side *runs.Side, used *runs.Used) string {
	at := "at its end"
	switch {
	case side.At != "":
		at = "before " + Line(side.At)
	case side.Phase != "":
		at += ", " + Line(side.Phase)
	}
	line := s.paint(bold, name) + "  run/" + Line(side.Run) + " " + at + "\n"
	return line + s.paint(dim, fmt.Sprintf("   %s, model %s · %s, %s tokens, %s", Line(side.Agent), Line(side.Model.Name), plural(int64(used.Steps), "step"), count(used.Tokens.Total()), cost(used.Cost))) + "\n"
}

func (c Comparison) conversation(s *Screen) {
	d := c.Divergence
	if d == nil {
		s.print("\nthe conversations are the same\n")
		return
	}
	s.print("\n" + s.paint(bold, "first difference") + fmt.Sprintf(", after %s in common\n", plural(int64(d.Same), "thing")))
	for _, x := range []struct {
		name string
		said *runs.Said
	}{{"a", d.A}, {"b", d.B}} {
		text := "nothing more"
		if x.said != nil {
			text = said(x.said)
		}
		s.print("  " + x.name + "  " + s.fitting(text, 5) + "\n")
	}
}

// said is one thing on one line.
func said(x *runs.Said) string {
	switch x.Kind {
	case runs.SaidPrompt:
		return "prompt: " + Line(x.Text)
	case runs.SaidAnswer:
		return "answer: " + Line(x.Text)
	case runs.SaidResult:
		return fmt.Sprintf("step %d, result of %s: %s", x.Step, Line(x.Call), Line(x.Text))
	}
	return fmt.Sprintf("step %d, %s: %s %s", x.Step, Line(x.Call), Line(x.Tool), Line(x.Text))
}

func (c Comparison) decisions(s *Screen) {
	if len(c.Decisions) == 0 {
		return
	}
	s.print("\n" + s.paint(bold, "decisions that differ") + "\n")
	for i, d := range c.Decisions {
		if i == mostDecisions {
			s.print(fmt.Sprintf("  and %d more: -o json\n", len(c.Decisions)-i))
			return
		}
		s.print("  " + s.fitting(Line(d.Tool)+" "+Line(d.Args), 2) + "\n")
		s.print(s.decided("a", &d.A) + s.decided("b", &d.B))
	}
}

// mostDecisions bounds those that are shown to a person.
const mostDecisions = 20

func (s *Screen) decided(name string, d *runs.Decided) string {
	text := fmt.Sprintf("    %s  %s by %s", name, s.paint(actionStyle(d.Decision), Line(string(d.Decision))), decider(d.Rule))
	if d.Answer != "" {
		text += ", " + Line(string(d.Answer))
	}
	return text + s.paint(dim, fmt.Sprintf("  step %d, %s", d.Step, Line(d.Call))) + "\n"
}

// unknown is why the files are not compared, "" where they are.
func (c Comparison) unknown() string {
	var all []string
	for _, x := range [][2]string{{"a", c.Files.Unknown.A}, {"b", c.Files.Unknown.B}} {
		if x[1] != "" {
			all = append(all, x[0]+": "+Line(x[1]))
		}
	}
	return strings.Join(all, "; ")
}

func (c Comparison) files() string {
	if len(c.Files.Changed) == 0 {
		return "the files are the same"
	}
	if len(c.Files.Changed) == 1 {
		return "1 file differs"
	}
	return count(int64(len(c.Files.Changed))) + " files differ"
}
