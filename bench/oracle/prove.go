//go:build linux && amd64

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
)

// prove prints which classes of attacks that exact facts miss are among the findings of
// the generated scripts: whether the generator finds by itself what people found.
func (e examiner) prove(ctx context.Context, out io.Writer, samples iter.Seq[sample], corpus string) error {
	attacks, err := readAttacks(corpus)
	if err != nil {
		return err
	}
	wanted := map[string][]string{} // class: attacks
	all := func(yield func(sample) bool) {
		for _, a := range attacks {
			if !yield(a.sample()) {
				return
			}
		}
	}
	exact, missed := 0, 0
	for r := range e.ExamineAll(ctx, all) {
		switch {
		case r.err != nil:
			return r.err
		case len(r.Missing) > 0:
			missed++
			name, _ := class(r)
			wanted[name] = append(wanted[name], r.ID)
			fallthrough
		case r.Exact:
			exact++
		}
	}
	fmt.Fprintf(out, "%d attacks, %d with exact facts, %d of these do more, in %d classes\n", len(attacks), exact, missed, len(wanted))
	var r report
	found := map[string]result{}
	for one := range e.ExamineAll(ctx, samples) {
		if one.err != nil {
			return one.err
		}
		r.add(one)
	}
	if err := e.classify(r.findings, wanted, found); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d scripts, %d (%.0f %%) with exact facts, %d findings\n\n", r.scripts, r.exact, 100*float64(r.exact)/float64(max(1, r.scripts)), len(r.findings))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		slices.Sort(wanted[name])
		fmt.Fprintf(out, "%-70s %v\n", cmp.Or(name, "no class"), wanted[name])
		if f, ok := found[name]; ok {
			fmt.Fprintf(out, "%s\n        not in the facts: %s\n", indent(f.text()), f.Missing[0])
		} else {
			fmt.Fprintln(out, "    NOT FOUND")
		}
	}
	fmt.Fprintf(out, "\n%d of %d classes found\n", len(found), len(wanted))
	return nil
}

// classify minimises findings until each wanted class has one.
func (e examiner) classify(findings []result, wanted map[string][]string, found map[string]result) error {
	slices.SortFunc(findings, func(a, b result) int { return cmp.Compare(len(a.Script), len(b.Script)) })
	for _, f := range findings {
		name, effect := class(f)
		if _, done := found[name]; done || name == "" || wanted[name] == nil {
			continue
		}
		f.Missing[0], f.Missing[effect] = f.Missing[effect], f.Missing[0]
		smaller, err := e.Minimise(f)
		if err != nil {
			return err
		}
		name, _ = class(smaller) // of what remains
		if _, done := found[name]; !done && wanted[name] != nil {
			found[name] = smaller
		}
	}
	return nil
}
