package display

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// Explanation is a decision and what led to it.
type Explanation struct {
	// Call is the tool and its arguments as JSON, Ref the run and the call.
	Call, Ref string
	Decision  message.Action
	// Rule as policy/rule, Place as file:line or "".
	Rule, Place, Reason string
	// Again is what a second evaluation decides.
	Again      message.Action
	Candidates []Candidate
}

// Candidate is something that could have decided.
type Candidate struct {
	Rule, Place, Action, Mode, When, Truth, Error string
	Decisive                                      bool
	// Values are pairs of an expression and its value.
	Values [][2]string
}

// Write writes the explanation for a person.
func (x Explanation) Write(s *Screen) error {
	s.print(s.paint(actionStyle(x.Decision), Line(string(x.Decision))) + "  by " + decider(x.Rule) + s.placed(x.Place) + "\n")
	if x.Reason != "" {
		s.print(Line(x.Reason) + "\n")
	}
	s.print(s.paint(bold, Line(x.Call)) + s.paint(dim, "  "+Line(x.Ref)) + "\n")
	if x.Again != x.Decision {
		s.print(s.paint(yellow, "warning:") + " judged again it is " + Line(string(x.Again)) + ": files, or a secret that the journal does not hold, were others then\n")
	}
	if len(x.Candidates) == 0 {
		s.print("\nno rule concerns this call\n")
	} else {
		s.print("\nwhat was asked:\n")
	}
	for _, c := range x.Candidates {
		c.write(s)
	}
	return s.Err()
}

func (c Candidate) write(s *Screen) {
	mark := "  "
	if c.Decisive {
		mark = "> "
	}
	line := fmt.Sprintf("%s%s  %s %s%s", mark, pad(Line(c.Truth), len("unknown")), Line(c.Action), Line(c.Rule), s.placed(c.Place))
	if c.Mode != "Enforce" {
		line += "  (" + Line(c.Mode) + ")"
	}
	s.print(line + "\n")
	indent := strings.Repeat(" ", 11)
	if c.When != "" {
		s.print(indent + "when " + Line(c.When) + "\n")
	}
	if c.Error != "" {
		s.print(indent + s.paint(red, "error: ") + Line(c.Error) + "\n")
	}
	for i, v := range c.Values {
		if i == 0 && v[1] == c.Truth {
			continue // the whole condition, whose value is the first word
		}
		s.print(indent + s.paint(dim, "  "+Line(v[0])+" = ") + Line(v[1]) + "\n")
	}
}

// decider is the rule that decided, or what did instead of one.
func decider(rule string) string {
	switch rule {
	case "default/loopGuard":
		return "the loop guard (spec.loopGuard of the agent)"
	case "default/planApproval":
		return "the plan (approval: true of the step)"
	}
	return Line(rule)
}

func (s *Screen) placed(place string) string {
	if place == "" {
		return ""
	}
	return s.paint(dim, " ("+Line(place)+")")
}

func actionStyle(a message.Action) style {
	return map[message.Action]style{message.Allow: green, message.Ask: yellow, message.Deny: red, message.Redact: yellow}[a]
}
