package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// report is everything that was measured.
type report struct {
	FsyncP50 time.Duration `json:"fsyncP50Ns"`
	// Repetitions of each scenario that was measured.
	Repetitions map[string]int `json:"repetitions"`
	// Notes say how something was measured where there is a choice.
	Notes   []string `json:"notes,omitempty"`
	Figures []figure `json:"figures"`

	scenario string
}

// figure is one line of the table. Values are medians over the repetitions,
// Ratio is the median of the ratios within each.
type figure struct {
	Scenario string   `json:"scenario"`
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Floor    *float64 `json:"floor,omitempty"`
	Agentctl *float64 `json:"agentctl,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"`
	Goal     *goal    `json:"goal,omitempty"`
}

// begin says which scenario the next figures belong to.
func (r *report) begin(scenario string, reps int) {
	if r.Repetitions == nil {
		r.Repetitions = map[string]int{}
	}
	r.scenario = scenario
	r.Repetitions[scenario] = reps
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, r.scenario+": "+fmt.Sprintf(format, args...))
}

// fastDisk is the fsync for which the goals per turn hold.
const fastDisk = 250 * time.Microsecond

// slowDisk is what a turn may cost more on a slower disk, in milliseconds: two
// durable writes cannot be faster than the disk.
func (r *report) slowDisk() float64 { return 2 * ms(max(0, r.FsyncP50-fastDisk)) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// compare adds a figure of both sides.
func compare[S any](r *report, name, unit string, all both[S], value func(S) float64, g *goal) {
	floor, ours := each(all.floor, value), each(all.ours, value)
	f := figure{Name: name, Unit: unit, Goal: g, Floor: medianOf(floor), Agentctl: medianOf(ours)}
	var ratios []float64
	for i := range min(len(floor), len(ours)) {
		if floor[i] > 0 {
			ratios = append(ratios, ours[i]/floor[i])
		}
	}
	f.Ratio = medianOf(ratios)
	r.add(f)
}

func medianOf(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	m := percentile(all, 50)
	return &m
}

// alone adds a figure that only agentctl has.
func (r *report) alone(name, unit string, value float64, g *goal) {
	r.add(figure{Name: name, Unit: unit, Agentctl: &value, Goal: g})
}

// add judges a figure against its goal; without a figure there is no goal.
func (r *report) add(f figure) {
	f.Scenario = r.scenario
	if f.Agentctl == nil {
		f.Goal = nil
	}
	if f.Goal != nil {
		f.Goal.judge(f)
	}
	r.Figures = append(r.Figures, f)
}

// missed names the goals that were not reached.
func (r *report) missed() error {
	var names []string
	for _, f := range r.Figures {
		if f.Goal != nil && !f.Goal.Met {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("goals missed: %s", strings.Join(names, ", "))
}

func (r *report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tmeasure\tunit\tfloor\tagentctl\tratio\tgoal")
	last := ""
	for _, f := range r.Figures {
		title := ""
		if f.Scenario != last {
			last = f.Scenario
			title = last
			if n := r.Repetitions[last]; n > 1 {
				title += fmt.Sprintf(" ×%d", n)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", title, f.Name, f.Unit, number(f.Floor), number(f.Agentctl), number(f.Ratio), f.Goal)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	_, err := fmt.Fprintln(w, "medians of interleaved repetitions; every command was counted")
	return err
}

func number(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v >= 1000:
		return fmt.Sprintf("%.0f", *v)
	default:
		return fmt.Sprintf("%.3g", *v)
	}
}
