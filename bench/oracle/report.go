//go:build linux && amd64

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// report collects the results.
type report struct {
	scripts, exact, effects, cut int
	findings                     []result
	// known findings are counted, and not shown.
	known openFindings
	open  int
}

func (r *report) add(one result) {
	r.scripts++
	r.effects += len(one.Trace.Effects)
	if one.Trace.Cut {
		r.cut++
	}
	if one.Exact {
		r.exact++
	}
	switch {
	case len(one.Missing) == 0:
	case r.known.Has(one):
		r.open++
	default:
		r.findings = append(r.findings, one)
	}
}

// cause is a class of findings.
type cause struct {
	class string
	count int
	// scripts are the smallest of them.
	scripts []result
}

// mostMinimised bounds how many findings of one kind of effect by one program are minimised.
const mostMinimised = 6

// causes minimises the findings and groups them, the most frequent class first.
func (e examiner) causes(findings []result) ([]cause, error) {
	slices.SortFunc(findings, func(a, b result) int {
		return cmp.Or(cmp.Compare(len(a.Script), len(b.Script)), cmp.Compare(a.Script, b.Script))
	})
	effects := map[string][]result{}
	counts := map[string]int{}
	for _, f := range findings {
		kind := f.Missing[0].sort()
		if counts[kind]++; counts[kind] <= mostMinimised {
			effects[kind] = append(effects[kind], f)
		}
	}
	var all []cause
	for kind, few := range effects {
		smaller, err := e.MinimiseAll(few)
		if err != nil {
			return nil, err
		}
		for _, f := range smaller {
			i := slices.IndexFunc(all, func(c cause) bool { return c.class == f.Missing[0].sort() })
			if i < 0 {
				i, all = len(all), append(all, cause{class: f.Missing[0].sort()})
			}
			all[i].count += max(1, counts[kind]/len(few))
			if !slices.ContainsFunc(all[i].scripts, func(r result) bool { return r.text() == f.text() }) {
				all[i].scripts = append(all[i].scripts, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.class, b.class))
	})
	return all, nil
}

// print writes the numbers and the causes.
func (r *report) print(out io.Writer, causes []cause, took time.Duration) {
	fmt.Fprintf(out, "%d scripts, %d (%.0f %%) with exact facts, %d effects, %d cut at the deadline, %d findings, %d known ones, %.0f s\n",
		r.scripts, r.exact, 100*float64(r.exact)/float64(max(1, r.scripts)), r.effects, r.cut, len(r.findings), r.open, took.Seconds())
	for _, c := range causes {
		fmt.Fprintf(out, "\n%s, about %d times:\n", c.class, c.count)
		for _, f := range c.scripts {
			fmt.Fprintf(out, "\n%s\n", indent(f.text()))
			for _, e := range f.Missing[:min(2, len(f.Missing))] {
				fmt.Fprintf(out, "        not in the facts: %s\n", e)
			}
		}
	}
}

func indent(script string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n    ")
}
