//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// report collects the results.
type report struct {
	scripts, exact, effects, cut int
	findings                     []finding
}

// finding is a script with effects that its facts lack.
type finding struct {
	script  string
	missing []Effect
}

func (r *report) add(facts Facts, t Trace, missing []Effect) {
	r.scripts++
	r.effects += len(t.Effects)
	if t.Cut {
		r.cut++
	}
	if facts.Exact {
		r.exact++
	}
	if len(missing) > 0 {
		r.findings = append(r.findings, finding{t.Script, missing})
	}
}

func (r *report) print(out *os.File, show int, took time.Duration) {
	fmt.Fprintf(out, "%d scripts, %d (%.0f %%) with exact facts, %d effects, %d cut at the deadline, %d findings, %.0f s\n",
		r.scripts, r.exact, 100*float64(r.exact)/float64(max(1, r.scripts)), r.effects, r.cut, len(r.findings), took.Seconds())
	slices.SortFunc(r.findings, func(a, b finding) int { return len(a.script) - len(b.script) })
	for _, f := range r.findings[:min(show, len(r.findings))] {
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(f.script))
		for _, e := range f.missing {
			fmt.Fprintf(out, "\t%s\n", e)
		}
	}
}
