package display

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/safetext"
)

// maxTitle and maxWhy bound, in cells, what a call may say for itself: its
// arguments are written by a model. With less room than minTitle the reason
// gets a line of its own.
const (
	maxTitle = 160
	minTitle = 16
	maxWhy   = 400
)

// callLine is the one line that stays of a call: tool, risk, decision, state,
// duration, subject, and why it did not run as the model asked.
func callLine(s *Screen, c *message.ToolPart, answer message.Answer, root string) string {
	risk, decision := "-", "-"
	if d := c.Decision; d != nil {
		decision = Line(string(d.Action))
		if d.Risk != "" {
			risk = Line(d.Risk)
		}
	}
	took := "-"
	if c.Result != nil && c.Start > 0 {
		took = duration(time.Duration(c.Result.DurationMicros) * time.Microsecond)
	}
	line := "  " + s.paint(bold, pad(cut(Line(c.Tool), 24), 8)) + "  " + pad(risk, 2) +
		"  " + s.paint(decisionStyle(c), pad(decision, 6)) + "  " + s.paint(stateStyle(c), pad(Line(string(c.State)), 9)) +
		"  " + fmt.Sprintf("%7s", took) + "  "
	about, why := title(c), cut(Line(why(c, answer, root)), maxWhy)
	width, taken := s.width(), ansi.StringWidth(line)
	switch {
	case about == "" && why != "" && width > 0 && taken+ansi.StringWidth(why) > width:
		return fit(strings.TrimRight(line, " "), width) + "\n" + below(why, width)
	case about == "" || why == "":
		return fit(strings.TrimRight(line+about+why, " "), width) + "\n"
	case width == 0:
	case width-taken-ansi.StringWidth(why)-3 >= minTitle:
		// The rule that decided matters more than the rest of a long command.
		about = fit(about, width-taken-ansi.StringWidth(why)-3)
	default:
		return fit(line+about, width) + "\n" + below(why, width)
	}
	return line + about + s.paint(dim, " · ") + why + "\n"
}

// below is a reason on lines of its own, of which there are few.
func below(why string, width int) string {
	const indent, lines = "            ", 3
	room := max(width-len(indent), minTitle)
	text := strings.Split(ansi.Wrap(why, room, ""), "\n")
	if len(text) > lines {
		text = append(text[:lines-1], cut(strings.Join(text[lines-1:], " "), room))
	}
	return indent + strings.Join(text, "\n"+indent) + "\n"
}

// why is the reason why a call did not run, or not as it should have. What asked
// about it comes last: a line may be cut. Paths below root, the folder of the run's files,
// are shown relative to it.
func why(c *message.ToolPart, answer message.Answer, root string) string {
	var says []string
	asked := ""
	if c.Expands != "" {
		says = append(says, "asked for by the prompt")
	}
	if d := c.Decision; d != nil {
		rule := Line(d.Rule)
		switch d.Action {
		case message.Allow:
		case message.Deny:
			says = append(says, "denied by "+rule+because(d.Message))
		case message.Ask:
			asked = "asked by " + decider(d.Rule) + because(d.Message)
		case message.Redact:
			says = append(says, "redacted by "+rule)
		}
	}
	if c.Approval != "" {
		text := string(c.Approval)
		switch by := Line(answer.By); {
		case by == "":
		case c.Approval == message.Approved || c.Approval == message.Rejected:
			text += " by " + by
		default:
			text += " (" + by + ")"
		}
		if answer.EndRun {
			text += ", who ended the run"
		}
		says = append(says, text+because(answer.Reason))
	}
	if c.Attempt > 1 {
		says = append(says, fmt.Sprintf("run again, attempt %d", c.Attempt))
	}
	if r := c.Result; r != nil {
		if excess := r.Record.Excess(root); excess != "" {
			says = append(says, excess)
		}
		switch {
		case r.Code == "" && r.ExitCode != nil && *r.ExitCode != 0:
			says = append(says, fmt.Sprintf("exit %d", *r.ExitCode))
		case r.Code != "" && r.Code != message.CodeDenied && r.Code != message.CodeRejected:
			says = append(says, string(r.Code)+because(r.Text))
		}
	}
	if asked != "" {
		says = append(says, asked)
	}
	return strings.Join(says, ", ")
}

func because(text string) string {
	if text = Line(text); text == "" {
		return ""
	}
	return ": " + text
}

// subjects are the arguments that describe a call best.
var subjects = []string{"command", "path", "pattern", "url", "query", "name"}

// Subject is a call in a few words: its tool, and what it was about.
func Subject(c *message.ToolPart) string { return Line(c.Tool + " " + title(c)) }

// title is what a call was about: the command it runs, else the tool's own
// words, else its arguments. Of a text of several lines it is the first, and how
// many follow.
func title(c *message.ToolPart) string {
	var args map[string]json.RawMessage
	isObject := json.Unmarshal(c.Input, &args) == nil
	text := func(name string) (s string) {
		_ = json.Unmarshal(args[name], &s) // an argument of another type is not a subject
		return s
	}
	if command := text(subjects[0]); command != "" {
		return fit(safetext.Head(command), maxTitle)
	}
	if c.Result != nil && c.Result.Title != "" {
		return fit(safetext.Head(c.Result.Title), maxTitle)
	}
	if isObject {
		for _, name := range subjects {
			if s := text(name); s != "" {
				return fit(safetext.Head(s), maxTitle)
			}
		}
		var b bytes.Buffer
		if len(args) > 0 && json.Compact(&b, c.Input) == nil {
			return cut(Line(b.String()), maxTitle)
		}
		return ""
	}
	return cut(Line(c.Raw), maxTitle)
}

func decisionStyle(c *message.ToolPart) style {
	if c.Decision == nil {
		return dim
	}
	switch c.Decision.Action {
	case message.Deny:
		return red
	case message.Ask, message.Redact:
		return yellow
	case message.Allow:
	}
	return green
}

func stateStyle(c *message.ToolPart) style {
	if c.State == message.StateError {
		return red
	}
	return ""
}
