package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// report is everything that was measured.
type report struct {
	Figures  []*figure `json:"figures"`
	Failures []failure `json:"failures"`
	Notes    []string  `json:"notes,omitempty"`

	part string
}

// figure is one line of the table.
type figure struct {
	Part string `json:"part"`
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Count of Of commands; both are 0 where a figure is not a share.
	Count int     `json:"count,omitempty"`
	Of    int     `json:"of,omitempty"`
	Value float64 `json:"value"`
	// Floor and Ratio are those of the same measurement without the analysis.
	Floor float64 `json:"floor,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	Goal  *goal   `json:"goal,omitempty"`
	// Peers are the figures of other programs on the same commands, by name.
	Peers map[string]float64 `json:"peers,omitempty"`
}

// goal bounds a value.
type goal struct {
	Most  *float64 `json:"most,omitempty"`
	Least *float64 `json:"least,omitempty"`
	Met   bool     `json:"met"`
}

func atMost(v float64) *goal  { return &goal{Most: &v} }
func atLeast(v float64) *goal { return &goal{Least: &v} }

func (g *goal) String() string {
	switch {
	case g == nil:
		return ""
	case g.Least != nil:
		return "≥ " + number(*g.Least)
	}
	return "≤ " + number(*g.Most)
}

// outcome is the last column of the table.
func (g *goal) outcome() string {
	if g == nil || g.Met {
		return ""
	}
	return "missed"
}

func (r *report) add(f *figure) *figure {
	f.Part = r.part
	if g := f.Goal; g != nil {
		g.Met = (g.Least == nil || f.Value >= *g.Least) && (g.Most == nil || f.Value <= *g.Most)
	}
	r.Figures = append(r.Figures, f)
	return f
}

// share adds a percentage.
func (r *report) share(name string, count, of int, g *goal) *figure {
	f := &figure{Name: name, Unit: "%", Count: count, Of: of, Goal: g}
	if of > 0 {
		f.Value = 100 * float64(count) / float64(of)
	}
	return r.add(f)
}

// count adds a number of commands.
func (r *report) count(name string, count, of int, g *goal) *figure {
	return r.add(&figure{Name: name, Unit: "", Count: count, Of: of, Value: float64(count), Goal: g})
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, r.part+": "+fmt.Sprintf(format, args...))
}

// missed names the goals that were not reached.
func (r *report) missed() error {
	var names []string
	for _, f := range r.Figures {
		if f.Goal.outcome() != "" {
			names = append(names, f.Part+": "+f.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("goals missed: %s", strings.Join(names, ", "))
}

// peers are the other programs that were asked, in the order of their columns.
func (r *report) peers() []string {
	var names []string
	for _, name := range []string{openCode, codex} {
		for _, f := range r.Figures {
			if _, ok := f.Peers[name]; ok {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

func (r *report) write(w io.Writer, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "markdown":
		return r.writeMarkdown(w)
	}
	return r.writeText(w)
}

// header and row are the cells of a line of the table.
func (r *report) header() []string {
	return append([]string{"part", "measure", "unit", "agentctl", "of", "floor", "goal", ""}, r.peers()...)
}

func (r *report) row(f *figure) []string {
	of, floor := "", ""
	if f.Of > 0 {
		of = fmt.Sprintf("%d of %d", f.Count, f.Of)
	}
	if f.Floor > 0 {
		floor = fmt.Sprintf("%s (%s ×)", number(f.Floor), number(f.Ratio))
	}
	cells := []string{f.Part, f.Name, f.Unit, number(f.Value), of, floor, f.Goal.String(), f.Goal.outcome()}
	for _, name := range r.peers() {
		cell := ""
		if v, ok := f.Peers[name]; ok {
			cell = number(v)
		}
		cells = append(cells, cell)
	}
	return cells
}

func (r *report) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(r.header(), "\t"))
	last := ""
	for _, f := range r.Figures {
		cells := r.row(f)
		if f.Part == last {
			cells[0] = ""
		}
		last = f.Part
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	_, err := fmt.Fprintf(w, "%d commands were not as wanted; -failures DIR lists each of them with its decision and the reason\n", len(r.Failures))
	return err
}

func (r *report) writeMarkdown(w io.Writer) error {
	head := r.header()
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, f := range r.Figures {
		cells := r.row(f)
		if cells[7] != "" {
			cells[7] = "**" + cells[7] + "**"
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")); err != nil {
			return err
		}
	}
	return nil
}

func number(v float64) string {
	switch {
	case v == float64(int(v)):
		return fmt.Sprint(int(v))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
