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
	Turns            int           `json:"turns"`
	Repetitions      int           `json:"repetitions"`
	FsyncP50         time.Duration `json:"fsyncP50Ns"`
	JournalPerSecond float64       `json:"journalEventsPerSecond,omitempty"`
	Init             initWork      `json:"init"`
	Figures          []figure      `json:"figures"`

	samples map[string][]sample
	memory  []memorySample
}

type memorySample struct {
	side string
	treePeak
}

// figure is one line of the table. Values are medians over the repetitions,
// Ratio is the median of the ratios within each.
type figure struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Floor    *float64 `json:"floor,omitempty"`
	Agentctl *float64 `json:"agentctl,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"`
	// Must is what this version promises, Final what a release will.
	Must  *goal `json:"must,omitempty"`
	Final *goal `json:"final,omitempty"`
}

// goal bounds the ratio to the floor, or the value.
type goal struct {
	Of    string  `json:"of"` // ratio | value
	Most  float64 `json:"most,omitempty"`
	Least float64 `json:"least,omitempty"`
	// Allowance is added to Most × floor on disks slower than the goal assumes.
	Allowance float64 `json:"allowance,omitempty"`
	Met       bool    `json:"met"`
}

const (
	ofRatio = "ratio"
	ofValue = "value"
)

// fastDisk is the fsync for which the goals per turn hold.
const fastDisk = 250 * time.Microsecond

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// summarise turns samples into figures.
func (r *report) summarise() {
	// Two durable writes a turn cannot be faster than the disk.
	slow := 2 * ms(max(0, r.FsyncP50-fastDisk))
	overhead := func(p, from int) func(sample) float64 {
		return func(s sample) float64 { return ms(percentile(s.Overheads[from:], p)) }
	}
	most := func(of string, limit, allowance float64) *goal {
		return &goal{Of: of, Most: limit, Allowance: allowance}
	}

	r.compare("wall of "+fmt.Sprint(r.Turns)+" turns", "ms", func(s sample) float64 { return ms(s.Wall) },
		most(ofRatio, 3, slow*float64(r.Turns)), most(ofRatio, 2.6, slow*float64(r.Turns)))
	r.compare("overhead per turn p50", "ms", overhead(50, 0), most(ofRatio, 2.5, slow), most(ofRatio, 2, slow))
	r.compare("overhead per turn p95, from turn 2", "ms", overhead(95, 1), nil, most(ofValue, 6, slow))
	r.compare("overhead of turn 1", "ms", func(s sample) float64 { return ms(s.Overheads[0]) }, nil, most(ofValue, 12, slow))
	r.compare("cold start to first request", "ms", func(s sample) float64 { return ms(s.Cold) }, most(ofValue, 40, 0), most(ofValue, 20, 0))
	r.compare("CPU of a run", "s", func(s sample) float64 { return s.CPU.Seconds() }, nil, most(ofValue, 0.12, 0))
	r.compareMemory("peak RSS of the process tree", func(m memorySample) float64 { return float64(m.RSS) / (1 << 20) },
		most(ofValue, 80, 0), most(ofValue, 65, 0))
	r.compareMemory("peak PSS of the process tree", func(m memorySample) float64 { return float64(m.PSS) / (1 << 20) }, nil, nil)
	if work := r.Init; work.Package != "" {
		r.add(figure{Name: "init before main, all packages", Unit: "ms", Agentctl: &work.Total})
		r.add(figure{Name: "slowest init: " + work.Package, Unit: "ms", Agentctl: &work.Slowest, Final: most(ofValue, 1, 0)})
	}
	if r.JournalPerSecond > 0 {
		rate := r.JournalPerSecond
		f := figure{
			Name: "journal, buffered", Unit: "events/s", Agentctl: &rate,
			Must: &goal{Of: ofValue, Least: 100_000}, Final: &goal{Of: ofValue, Least: 100_000},
		}
		r.add(f)
	}
	fsync := ms(r.FsyncP50)
	r.add(figure{Name: "fsync of this disk p50", Unit: "ms", Floor: &fsync})
}

func (r *report) compare(name, unit string, value func(sample) float64, must, final *goal) {
	floor, ours := each(r.samples[sideFloor], value), each(r.samples[sideAgentctl], value)
	r.add(newFigure(name, unit, floor, ours, must, final))
}

func (r *report) compareMemory(name string, value func(memorySample) float64, must, final *goal) {
	by := map[string][]float64{}
	for _, m := range r.memory {
		by[m.side] = append(by[m.side], value(m))
	}
	if len(r.memory) > 0 {
		r.add(newFigure(name, "MB", by[sideFloor], by[sideAgentctl], must, final))
	}
}

func newFigure(name, unit string, floor, ours []float64, must, final *goal) figure {
	f := figure{Name: name, Unit: unit, Must: must, Final: final}
	f.Floor = medianOf(floor)
	f.Agentctl = medianOf(ours)
	var ratios []float64
	for i := range min(len(floor), len(ours)) {
		if floor[i] > 0 {
			ratios = append(ratios, ours[i]/floor[i])
		}
	}
	f.Ratio = medianOf(ratios)
	return f
}

func medianOf(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	m := percentile(all, 50)
	return &m
}

// add judges a figure against its goals; without a figure there is no goal.
func (r *report) add(f figure) {
	if f.Agentctl == nil {
		f.Must, f.Final = nil, nil
	}
	for _, g := range []*goal{f.Must, f.Final} {
		if g != nil {
			g.judge(f)
		}
	}
	r.Figures = append(r.Figures, f)
}

func (g *goal) judge(f figure) {
	switch {
	case g.Of == ofRatio:
		ratio := *f.Ratio
		if f.Floor != nil && *f.Floor > 0 {
			ratio -= g.Allowance / *f.Floor
		}
		g.Met = ratio <= g.Most
	case g.Least > 0:
		g.Met = *f.Agentctl >= g.Least
	default:
		g.Met = *f.Agentctl <= g.Most+g.Allowance
	}
}

func (g *goal) String() string {
	if g == nil {
		return ""
	}
	var text string
	switch {
	case g.Least > 0:
		text = fmt.Sprintf("≥ %.0f", g.Least)
	case g.Of == ofRatio:
		text = fmt.Sprintf("≤ %.1f ×", g.Most)
	default:
		text = fmt.Sprintf("≤ %g", g.Most)
	}
	if g.Allowance > 0 {
		text += fmt.Sprintf(" + %.2f ms disk", g.Allowance)
	}
	if g.Met {
		return text + " ok"
	}
	return text + " MISS"
}

// missed names the hard goals that were not reached.
func (r *report) missed() error {
	var names []string
	for _, f := range r.Figures {
		if f.Must != nil && !f.Must.Met {
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
	fmt.Fprintf(t, "%d repetitions, interleaved; every command was counted\n\n", r.Repetitions)
	fmt.Fprintln(t, "measure\tunit\tfloor\tagentctl\tratio\tmust\tfinal")
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Unit, number(f.Floor), number(f.Agentctl), number(f.Ratio), f.Must, f.Final)
	}
	return t.Flush()
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
