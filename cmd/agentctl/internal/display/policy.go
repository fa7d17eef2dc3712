package display

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"agentctl.dev/agentctl/runner/policy/policytest"
)

// FormatJUnit is the XML that CI servers read.
const FormatJUnit = "junit"

// PolicyTests says how the cases of policies went.
type PolicyTests struct {
	*policytest.Report
	// Again is the command line that has judged them, without --run.
	Again string
	// Mutate says that mutants were asked for.
	Mutate bool
}

// WriteJSON writes the report as an object.
func (p PolicyTests) WriteJSON(s *Screen) error { return writeJSON(s, p.Report) }

// WriteText writes what failed, and a line for each policy.
func (p PolicyTests) WriteText(s *Screen) error {
	var b strings.Builder
	for i := range p.Policies {
		for j := range p.Policies[i].Cases {
			if c := &p.Policies[i].Cases[j]; !c.Pass {
				b.WriteString(s.paint(red, "FAIL") + " " + Line(p.Policies[i].Name+": "+c.Name) + "\n")
				b.WriteString(p.failed(i, j))
			}
		}
	}
	for i := range p.Policies {
		b.WriteString(p.summary(s, i))
	}
	return Text(s, strings.TrimSuffix(b.String(), "\n"))
}

// failed shows what is wrong with a case, one field a line.
func (p PolicyTests) failed(policy, index int) string {
	c := &p.Policies[policy].Cases[index]
	call := c.Tool + " " + string(c.Args)
	if c.Agent != "" {
		call += " (agent " + c.Agent + ")"
	}
	rows := [][2]string{{"case", c.Position.String()}, {"call", call}}
	want := string(c.Want.Action)
	if c.Want.Rule != "" {
		want += " by " + c.Want.Rule
	}
	rows = append(rows, [2]string{"want", want + quotedParts(c.Want.Message, c.Want.Text)})
	switch {
	case c.Got == nil:
		rows = append(rows, [2]string{"got", c.Problem})
	default:
		got := string(c.Got.Action)
		if c.Got.Rule != "" {
			got += " by " + c.Got.Rule
		}
		rows = append(rows, [2]string{"got", got + quotedParts(c.Got.Message, shownText(c.Want.Text, c.Got.Text))})
		if c.RulePosition != nil {
			rows = append(rows, [2]string{"rule", c.RulePosition.String()})
		}
	}
	rows = append(rows, [2]string{"next", p.Again + " --run " + shellQuote("^"+regexp.QuoteMeta(c.Name)+"$")})
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-4s  %s\n", r[0], Line(r[1]))
	}
	return b.String() + "\n"
}

// shownText is the text of a result, where the case is about it.
func shownText(want, got *string) *string {
	if want == nil {
		return nil
	}
	return got
}

func quotedParts(message string, text *string) string {
	out := ""
	if message != "" {
		out += fmt.Sprintf(": %q", message)
	}
	if text != nil {
		out += fmt.Sprintf(", the text %q", *text)
	}
	return out
}

// summary is one policy on one line, and what its cases leave open below it.
func (p PolicyTests) summary(s *Screen, i int) string {
	r := &p.Policies[i]
	failed := 0
	for j := range r.Cases {
		if !r.Cases[j].Pass {
			failed++
		}
	}
	mark, passed := s.paint(green, "ok  "), plural(int64(len(r.Cases)), "case")
	switch {
	case failed > 0:
		mark, passed = s.paint(red, "FAIL"), fmt.Sprintf("%d of %s failed", failed, passed)
	case len(r.Cases) == 0:
		mark, passed = s.paint(yellow, "-   "), "no cases"
	}
	parts := []string{passed}
	var below strings.Builder
	if c := r.Coverage; c != nil {
		for _, share := range []struct {
			name string
			policytest.Share
		}{{"rules", c.Rules}, {"permissions", c.Permissions}} {
			if share.Total > 0 {
				parts = append(parts, fmt.Sprintf("%s %d/%d%s", share.name, share.Covered, share.Total, gaps(share.Missing)))
			}
		}
	}
	if p.Mutate && r.Mutation == nil && failed > 0 {
		fmt.Fprintf(&below, "  mutants were not tried: a mutant counts as noticed when a case fails, and %s already\n", unmended(failed))
	}
	if m := r.Mutation; m != nil {
		parts = append(parts, fmt.Sprintf("mutants %d/%d (%s %%)", m.Killed, m.Mutants, percent(m.Score)))
		for _, x := range m.Survivors {
			fmt.Fprintf(&below, "  survivor  %s  %s\n", x.Position, Line(x.Change))
		}
		if len(m.Survivors) > 0 {
			below.WriteString("  no case fails with such a change: write one that does\n")
		}
	}
	return mark + " " + Line(r.Name) + "  " + strings.Join(parts, ", ") + "\n" + below.String()
}

func unmended(n int) string {
	if n == 1 {
		return "1 fails"
	}
	return fmt.Sprintf("%d fail", n)
}

// maxGaps bounds what one line lists.
const maxGaps = 5

func gaps(missing []policytest.Gap) string {
	if len(missing) == 0 {
		return ""
	}
	var words []string
	for _, g := range missing[:min(len(missing), maxGaps)] {
		words = append(words, Line(fmt.Sprintf("%s never %s", g.Name, g.Never)))
	}
	if more := len(missing) - maxGaps; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// percent never rounds up to a hundred.
func percent(share float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", math.Floor(share*10)/10), ".0")
}

// shellQuote makes one word of a text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
