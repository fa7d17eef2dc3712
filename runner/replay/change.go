package replay

import (
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// Change is what a new recording changes.
type Change struct {
	// File is the cassette; Written is true if it holds the new run.
	File    string `json:"file"`
	Written bool   `json:"written"`
	// Same is true if only times, ids and what follows from them differ.
	Same bool `json:"same"`

	Reason Pair[string]        `json:"reason"`
	Steps  Pair[int]           `json:"steps"`
	Tokens Pair[int64]         `json:"tokens"`
	Cost   Pair[*message.Cost] `json:"cost"`
	// Calls and Output are unified diffs of the calls with their decisions and of
	// the answer; "" where they are equal.
	Calls  string `json:"calls"`
	Output string `json:"output"`
	// Result is that of the new run.
	Result view.Result `json:"result"`
}

// Pair is a value before and after.
type Pair[T any] struct {
	Recorded T `json:"recorded"`
	Now      T `json:"now"`
}

// Compare compares two runs in what they came to.
func Compare(before, after *view.Run) Change {
	was, is := before.Finished, after.Finished
	c := Change{
		Reason: Pair[string]{was.Reason, is.Reason}, Steps: Pair[int]{was.Steps, is.Steps},
		Tokens: Pair[int64]{was.Tokens.Total(), is.Tokens.Total()}, Cost: Pair[*message.Cost]{was.Cost, is.Cost},
		Calls:  udiff.Unified("recorded", "now", callLines(before), callLines(after)),
		Output: udiff.Unified("recorded", "now", endLine(was.Output), endLine(is.Output)),
	}
	c.Same = c.Reason.Recorded == c.Reason.Now && c.Steps.Recorded == c.Steps.Now && c.Tokens.Recorded == c.Tokens.Now &&
		c.Calls == "" && c.Output == "" && sameCost(was.Cost, is.Cost)
	return c
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// callLines are the calls of a run, one a line.
func callLines(v *view.Run) string {
	var b strings.Builder
	for _, c := range v.Result("").ToolCalls {
		fmt.Fprintf(&b, "%s %s: ", c.Tool, c.Args)
		switch {
		case c.Decision == nil:
			b.WriteString("not judged")
		default:
			b.WriteString(*c.Decision)
			if c.Rule != nil {
				b.WriteString(" by " + *c.Rule)
			}
		}
		if c.Approval != nil {
			b.WriteString(", " + *c.Approval)
		}
		b.WriteString(", " + c.State)
		if c.Error != nil {
			b.WriteString(" " + *c.Error)
		}
		if c.ExitCode != nil {
			fmt.Fprintf(&b, ", exit code %d", *c.ExitCode)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func sameCost(a, b *message.Cost) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
