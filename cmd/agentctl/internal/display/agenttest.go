package display

import (
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/agenttest/report"
)

// AgentTests shows how the tests of agents went.
type AgentTests struct {
	*report.Report
	// Again is the command line that has carried them out, without names.
	Again string
	// Least is the coverage that is required, in percent; 0 is none.
	Least float64
}

// WriteJSON writes the report as an object.
func (t AgentTests) WriteJSON(s *Screen) error { return writeJSON(s, t.Report) }

// WriteText writes what failed, a line for each test, and what was compared.
func (t AgentTests) WriteText(s *Screen) error {
	var b strings.Builder
	for i := range t.Results {
		c := &t.Results[i]
		switch {
		case c.NotRun != "":
		case !c.Pass:
			b.WriteString(s.paint(red, "FAIL") + " " + Line(t.name(c)) + "\n" + t.failed(c) + recorded(s, c) + "\n")
		default:
			b.WriteString(t.noted(s, c))
		}
	}
	for i := range t.Columns {
		b.WriteString(t.column(s, i))
	}
	if len(t.Columns) > 1 {
		b.WriteString("\n" + t.table())
	}
	if t.Coverage != nil {
		b.WriteString("\n" + t.coverage(s))
	}
	if t.Comparison != nil {
		b.WriteString("\n" + t.comparison(s))
	}
	b.WriteString("\n" + t.sum(s) + "\n")
	return Text(s, strings.TrimSuffix(b.String(), "\n"))
}

// name is a case with its column, where there are several.
func (t AgentTests) name(c *report.Case) string {
	name := c.Name()
	if len(t.Columns) > 1 {
		name += " (" + columnName(c.Model, c.Policy) + ")"
	}
	return name
}

func columnName(model, policy string) string {
	switch {
	case model == "" && policy == "":
		return "as declared"
	case policy == "":
		return "model " + model
	case model == "":
		return "policy " + policy
	}
	return "model " + model + ", policy " + policy
}

// noted shows what a case that passed has to say.
func (t AgentTests) noted(s *Screen, c *report.Case) string {
	var b strings.Builder
	for _, note := range c.Notes {
		b.WriteString(s.paint(yellow, "note") + " " + Line(t.name(c)+": "+note) + "\n")
	}
	b.WriteString(recorded(s, c))
	return b.String()
}

// recorded shows what a new recording changes.
func recorded(s *Screen, c *report.Case) string {
	switch {
	case c.Change != nil:
		return updateText(s, c.Change)
	case c.Recorded:
		return Line(c.Cassette) + ": recorded for the first time\n"
	}
	return ""
}

// failed shows what is wrong with a case, one field a line.
func (t AgentTests) failed(c *report.Case) string {
	rows := [][2]string{{"case", c.Position.String()}}
	if c.Phase != "" {
		rows = append(rows, [2]string{"run", ending(c)})
	}
	if c.Cassette != "" {
		rows = append(rows, [2]string{"cassette", c.Cassette})
	}
	switch {
	case c.Divergence != nil:
		d := c.Divergence
		rows = append(rows, [2]string{"problem", strings.TrimPrefix(d.Where()+": "+d.What, ": ") + " (" + d.Place() + ")"}, [2]string{"recorded", d.Recorded}, [2]string{"now", d.Now})
	case c.Problem != "":
		rows = append(rows, [2]string{"problem", c.Problem})
	}
	if c.Hint != "" {
		rows = append(rows, [2]string{"hint", c.Hint})
	}
	for i := range c.Expectations {
		if e := &c.Expectations[i]; !e.Pass {
			rows = append(rows, expected(e)...)
		}
	}
	for _, note := range c.Notes {
		rows = append(rows, [2]string{"note", note})
	}
	if c.Kept != "" {
		rows = append(rows, [2]string{"kept", c.Kept})
	}
	rows = append(rows, [2]string{"next", t.Again + " " + shellWord(c.Name())})
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s  %s\n", pad(r[0], 8), Line(r[1]))
	}
	return b.String()
}

// ending is how a run ended.
func ending(c *report.Case) string {
	text := c.Phase
	if c.Reason != "" && c.Reason != "Completed" {
		text += " · " + c.Reason
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text + " · " + plural(int64(c.Steps), "step")
}

// expected shows an expectation that was not met, with the values of its parts.
func expected(e *report.Expectation) [][2]string {
	rows := [][2]string{{"expected", e.Expression + "  (" + e.Position.String() + ")"}}
	if e.Name != "" {
		rows[0][1] = e.Name + ": " + rows[0][1]
	}
	if e.Message != "" {
		rows = append(rows, [2]string{"message", e.Message})
	}
	if e.Error != "" {
		rows = append(rows, [2]string{"error", e.Error})
	}
	for i, v := range e.Values {
		if i == 0 && v.Value == "false" {
			continue // that is why it is shown
		}
		rows = append(rows, [2]string{"value", v.Expression + " = " + v.Value})
	}
	return rows
}

// column is a line for each test of a column.
func (t AgentTests) column(s *Screen, at int) string {
	var b strings.Builder
	column := &t.Columns[at]
	if len(t.Columns) > 1 {
		b.WriteString(s.paint(bold, Line(columnName(column.Model, column.Policy))) + "\n")
	}
	var rows [][]string
	size := len(t.Results) / len(t.Columns)
	cases := t.Results[at*size : (at+1)*size]
	for len(cases) > 0 {
		n := 1
		for n < len(cases) && cases[n].Test == cases[0].Test {
			n++
		}
		rows = append(rows, testRow(s, cases[:n]))
		cases = cases[n:]
	}
	return b.String() + table(rows)
}

// testRow is one test with its cases.
func testRow(s *Screen, cases []report.Case) []string {
	var used report.Used
	failed, left := 0, 0
	for i := range cases {
		used.Add(cases[i].Used)
		switch {
		case cases[i].NotRun != "":
			left++
		case !cases[i].Pass:
			failed++
		}
	}
	mark, passed := s.paint(green, "ok"), plural(int64(len(cases)), "case")
	switch {
	case failed > 0:
		mark, passed = s.paint(red, "FAIL"), fmt.Sprintf("%d of %s failed", failed, passed)
	case left > 0:
		mark, passed = s.paint(dim, "skip"), fmt.Sprintf("%d of %s not run", left, passed)
	}
	row := []string{mark, Line(cases[0].Test), passed}
	if left < len(cases) {
		row = append(row, plural(int64(used.Steps), "step"), spent(&used), duration(time.Duration(used.DurationMs)*time.Millisecond))
	}
	return row
}

// spent is what runs cost.
func spent(u *report.Used) string {
	if u.Unpriced {
		return "cost unknown"
	}
	return cost(&u.Cost)
}

// table compares the columns.
func (t AgentTests) table() string {
	rows := [][]string{{"MODEL", "POLICY", "PASSED", "STEPS", "TOKENS", "COST", "TIME"}}
	for i := range t.Columns {
		c := &t.Columns[i]
		rows = append(rows, []string{
			orDash(c.Model), orDash(c.Policy), fmt.Sprintf("%d/%d", c.Passed, c.Passed+c.Failed), count(int64(c.Steps)), count(c.Tokens),
			spent(&c.Used), duration(time.Duration(c.DurationMs) * time.Millisecond),
		})
	}
	return table(rows)
}

func orDash(name string) string {
	if name == "" {
		return "-"
	}
	return Line(name)
}

// coverage shows what no run has exercised.
func (t AgentTests) coverage(s *Screen) string {
	var b strings.Builder
	c := t.Coverage
	for i := range c.Policies {
		p := &c.Policies[i]
		parts := []string{}
		if p.Rules.Total > 0 {
			parts = append(parts, fmt.Sprintf("rules %d/%d%s", p.Rules.Covered, p.Rules.Total, gaps(p.Rules.Missing)))
		}
		if p.Permissions.Total > 0 {
			parts = append(parts, fmt.Sprintf("permissions %d/%d%s", p.Permissions.Covered, p.Permissions.Total, gaps(p.Permissions.Missing)))
		}
		if !p.Judged {
			parts = append(parts, "it has judged no call")
		}
		b.WriteString("policy " + Line(p.Name) + "  " + strings.Join(parts, ", ") + "\n")
	}
	for i := range c.Agents {
		a := &c.Agents[i]
		parts := []string{fmt.Sprintf("tools %d/%d", len(a.Called), len(a.Called)+len(a.Missing))}
		if len(a.Missing) > 0 {
			parts[0] += " (never called: " + Line(strings.Join(a.Missing, ", ")) + ")"
		}
		if !a.Run {
			parts = append(parts, "it was not run")
		}
		b.WriteString("agent " + Line(a.Name) + "  " + strings.Join(parts, ", ") + "\n")
	}
	line := fmt.Sprintf("coverage %s %% (%d of %d)", percent(c.Percent), c.Covered, c.Total)
	if t.Least > 0 && c.Percent < t.Least {
		line = s.paint(red, line+fmt.Sprintf(", less than the %s %% of --min-coverage", percent(t.Least)))
	}
	return b.String() + line + "\n"
}

// comparison shows what has changed since the baseline.
func (t AgentTests) comparison(s *Screen) string {
	var b strings.Builder
	c := t.Comparison
	change := func(mark string, x *report.Change) {
		of := x.Case
		if of == "" {
			of = "all cases"
		}
		if x.Model != "" || x.Policy != "" {
			of += " (" + columnName(x.Model, x.Policy) + ")"
		}
		what := x.What + ": "
		if x.What == "passed" {
			what = ""
		}
		b.WriteString(mark + " " + Line(of+": "+what+x.Before+" → "+x.Now) + "\n")
	}
	for i := range c.Regressions {
		change(s.paint(red, "worse "), &c.Regressions[i])
	}
	for i := range c.Improvements {
		change(s.paint(green, "better"), &c.Improvements[i])
	}
	for _, name := range c.Missing {
		b.WriteString(s.paint(yellow, "gone  ") + " " + Line(name) + "\n")
	}
	for _, name := range c.New {
		b.WriteString(s.paint(dim, "new   ") + " " + Line(name) + "\n")
	}
	return b.String() + "compared with " + Line(c.Baseline) + ": " + plural(int64(len(c.Regressions)), "regression") + "\n"
}

// sum is the last line.
func (t AgentTests) sum(s *Screen) string {
	ran := t.Passed + t.Failed
	line := s.paint(green, plural(int64(ran), "case")+" passed")
	if t.Failed > 0 {
		line = s.paint(red, fmt.Sprintf("%d of %s failed", t.Failed, plural(int64(ran), "case")))
	}
	if t.NotRun > 0 {
		line += fmt.Sprintf(", %d not run", t.NotRun)
	}
	return line + " in " + duration(time.Duration(t.DurationMs)*time.Millisecond)
}
