package httpapi

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// Tally is a server's report of what an answer took.
type Tally struct {
	Usage message.Usage
	// Reported is true if there was a report.
	Reported bool
	wrong    []string
}

// Count reads a number of tokens; null leaves the value as it is. An impossible number
// counts as 0, with a warning.
func (t *Tally) Count(c *jsonpass.Cursor, into *int64) {
	if c.Null() {
		return
	}
	name := c.Key()
	n, wrong := c.Count()
	if wrong != "" {
		warning := fmt.Sprintf("the server reported %s: %s; it counts as 0", name, model.Quote([]byte(wrong)))
		if !slices.Contains(t.wrong, warning) {
			t.wrong = append(t.wrong, warning)
		}
	}
	*into = n
}

// Into writes the report into an answer. Without a report, or without one plausible number
// in it, the usage is marked as unknown: otherwise no budget would end such a run.
func (t *Tally) Into(out *message.Output) {
	out.Usage, out.Warnings = t.Usage, append(out.Warnings, t.wrong...)
	out.Uncounted = !t.Reported || len(t.wrong) > 0 && t.Usage.Total() == 0
}
