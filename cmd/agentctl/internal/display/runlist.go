package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// Formats of a list.
const (
	FormatWide = "wide"
	FormatName = "name"
)

// RunList is a table of runs.
type RunList struct {
	Runs []ListedRun
	// Now is the time from which ages count.
	Now time.Time
	// Format is text, wide or name.
	Format string
	// NoHeaders leaves out the names of the columns.
	NoHeaders bool
	// Namespaces adds a column with the namespace of objects.
	Namespaces bool
}

// ListedRun is a run in a list.
type ListedRun struct {
	Name, Agent, Model, Phase, Reason string
	// Ref is the name for -o name, Where the place of the run.
	Ref, Where string
	// Namespace of the object that the run is executed for.
	Namespace string
	Started   time.Time
	Steps     int
	Tokens    int64
	Cost      *message.Cost
	Worked    time.Duration
	// Waiting counts the calls that wait for an approval.
	Waiting int
	Source  string
	// Depth is how many runs of the list are above it.
	Depth int
}

// Write writes one line a run.
func (l RunList) Write(s *Screen) error {
	if l.Format == FormatName {
		for i := range l.Runs {
			s.print(Line(l.Runs[i].Ref) + "\n")
		}
		return s.Err()
	}
	head := []string{"NAME", "AGENT", "PHASE", "REASON", "AGE", "STEPS", "COST", "WHERE"}
	if l.Namespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if l.Format == FormatWide {
		head = append(head, "MODEL", "TOKENS", "WORKED", "WAITING", "WORKSPACE")
	}
	rows := [][]string{head}
	for i := range l.Runs {
		r := &l.Runs[i]
		row := []string{
			strings.Repeat("  ", r.Depth) + Line(r.Name), dash(Line(r.Agent)), s.paint(phaseStyle(r.Phase), Line(r.Phase)), dash(Line(r.Reason)),
			age(l.Now.Sub(r.Started)), strconv.Itoa(r.Steps), listedCost(r.Cost), Line(r.Where),
		}
		if l.Namespaces {
			row = append([]string{dash(Line(r.Namespace))}, row...)
		}
		if l.Format == FormatWide {
			row = append(row, dash(Line(r.Model)), strconv.FormatInt(r.Tokens, 10), duration(r.Worked), strconv.Itoa(r.Waiting), dash(Line(r.Source)))
		}
		rows = append(rows, row)
	}
	if l.NoHeaders {
		rows = rows[1:]
	}
	s.print(table(rows))
	return s.Err()
}

func phaseStyle(phase string) style {
	return map[string]style{"Succeeded": green, "Failed": red, "Unreadable": red, "Cancelled": yellow, "Suspended": yellow, "Interrupted": yellow}[phase]
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func listedCost(usd *message.Cost) string {
	if usd == nil {
		return "-"
	}
	return "$" + usd.String()
}

// age is a length of time in its largest unit, as kubectl shows it: 12s, 5m, 3h, 2d.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
