package ci

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/view"
)

// Limits of a summary, in bytes and in rows of a table. GitHub takes 1 MiB of a step.
const (
	maxSummary = 1 << 20
	maxAnswer  = 64 << 10
	maxRows    = 50
	maxCell    = 1 << 10
)

// code is untrusted text in a line of Markdown. Every sign is written as a number, so that
// none of it is Markdown, HTML or an address.
func code(text string) string {
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range clip(line(text), maxCell) {
		if r < 0x80 && r != ' ' && !(r >= '0' && r <= '9') && !(r >= 'a' && r <= 'z') && !(r >= 'A' && r <= 'Z') {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String() + "</code>"
}

// block is untrusted text of several lines in a fence that is longer than any in it.
func block(text string) string {
	text = clip(prose(text), maxAnswer)
	fence, n := 3, 0
	for _, r := range text {
		if n++; r != '`' {
			n = 0
		}
		fence = max(fence, n+1)
	}
	mark := strings.Repeat("`", fence)
	return mark + "text\n" + text + "\n" + mark + "\n"
}

// table is rows of cells, of which the first is the head. Cells are Markdown.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		if i > maxRows {
			fmt.Fprintf(&b, "\n%d more\n", len(rows)-i)
			break
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
	return b.String() + "\n"
}

// summary is a run as a page of Markdown.
func summary(r *view.Result, found []Finding, omitted int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "## Run of %s: %s\n\n", code(r.Agent), code(r.Phase))
	if p := problem(r); p != "" {
		b.WriteString(code(p) + "\n\n")
	}
	cost := "unknown"
	if r.Cost != nil {
		cost = "$" + r.Cost.String()
	}
	b.WriteString(table([][]string{
		{"run", "steps", "calls", "refused", "changed files", "cost", "seconds"},
		{
			code(r.Run), fmt.Sprint(r.Steps), fmt.Sprint(r.Calls.Done), fmt.Sprint(r.Calls.Refused),
			fmt.Sprint(len(r.ChangedFiles) + r.ChangedFilesOmitted), cost, fmt.Sprintf("%.1f", float64(r.DurationMs)/1000),
		},
	}))
	part := func(title string, rows [][]string) {
		if len(rows) > 1 {
			b.WriteString("### " + title + "\n\n" + table(rows))
		}
	}
	rows := [][]string{{"evidence", "met", "what is missing"}}
	for _, e := range r.Evidence {
		met := "no"
		if e.Met {
			met = "yes"
		}
		rows = append(rows, []string{code(e.Name), met, code(e.Message)})
	}
	part("Evidence", rows)
	rows = [][]string{{"level", "place", "finding", "rule"}}
	for _, f := range found {
		place := f.File
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		rows = append(rows, []string{string(f.Level), code(place), code(f.Message), code(f.Rule)})
	}
	part("Findings", rows)
	if omitted > 0 {
		fmt.Fprintf(&b, "Left out of the findings of the answer, for want of a message or because they are too many: %d\n\n", omitted)
	}
	rows = [][]string{{"refused call", "why"}}
	for i := range r.ToolCalls {
		if why := refusal(&r.ToolCalls[i]); why != "" {
			rows = append(rows, []string{code(callName(&r.ToolCalls[i])), code(why)})
		}
	}
	part("Refused calls", rows)
	rows = [][]string{{"file", "change"}}
	for _, c := range r.ChangedFiles {
		rows = append(rows, []string{code(c.Path), code(c.Change)})
	}
	part("Changed files", rows)
	if r.Output != "" {
		b.WriteString("### Answer\n\n" + block(r.Output) + "\n")
	}
	return []byte(b.String())
}
