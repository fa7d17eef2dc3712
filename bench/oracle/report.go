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
	if len(one.Missing) > 0 {
		r.findings = append(r.findings, one)
	}
}

// cause is what findings with the same minimal script have in common.
type cause struct {
	result
	count int
}

// causes groups minimised findings, the most frequent first.
func causes(findings []result) (all []cause) {
	for _, f := range findings {
		i := slices.IndexFunc(all, func(c cause) bool { return c.text() == f.text() })
		if i < 0 {
			i, all = len(all), append(all, cause{result: f})
		}
		all[i].count++
	}
	slices.SortFunc(all, func(a, b cause) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(len(a.text()), len(b.text())), cmp.Compare(a.text(), b.text()))
	})
	return all
}

func (r *report) print(out io.Writer, show int, took time.Duration) {
	fmt.Fprintf(out, "%d scripts, %d (%.0f %%) with exact facts, %d effects, %d cut at the deadline, %d findings, %.0f s\n",
		r.scripts, r.exact, 100*float64(r.exact)/float64(max(1, r.scripts)), r.effects, r.cut, len(r.findings), took.Seconds())
	all := causes(r.findings)
	for _, c := range all[:min(show, len(all))] {
		fmt.Fprintf(out, "\n%d times, %s:\n%s\n", c.count, class(c.result), indent(c.text()))
		for _, e := range c.Missing[:min(3, len(c.Missing))] {
			fmt.Fprintf(out, "        not in the facts: %s\n", e)
		}
	}
}

func indent(script string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n    ")
}
