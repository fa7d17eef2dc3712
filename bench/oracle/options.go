//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"
)

type options struct {
	scripts, exact, workers, show int
	seed                          uint64
	last                          time.Duration
	file, judge, attacks, open    string
	dash, trace, facts            bool
}

func parseOptions() (o options) {
	flag.IntVar(&o.scripts, "n", 1000, "how many scripts to generate; 0: as many as -exact and -for demand")
	flag.IntVar(&o.exact, "exact", 0, "stop after so many scripts with exact facts")
	flag.DurationVar(&o.last, "for", 0, "stop after this time")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the generator")
	flag.BoolVar(&o.dash, "dash", false, "have dash run each script, too, as the text of sh -c")
	flag.StringVar(&o.file, "f", "", "read scripts from this file, one JSON string a line, instead of generating them")
	flag.StringVar(&o.judge, "judge", "", "a program that prints the facts of each script, instead of the analysis of this tree")
	flag.BoolVar(&o.facts, "facts", false, "be such a program: read scripts as JSON strings, one a line, and print the facts of each")
	flag.StringVar(&o.attacks, "attacks", "", "measure which classes of the attacks of this corpus (YAML) the generated scripts find")
	flag.StringVar(&o.open, "open", "", "a file of findings that are known: they do not count, see TestOpenFindings")
	flag.IntVar(&o.workers, "j", runtime.NumCPU(), "scripts that run at the same time")
	flag.IntVar(&o.show, "show", 20, "how many causes of findings to show")
	flag.BoolVar(&o.trace, "trace", false, "run every script, and print its facts and its effects")
	flag.Parse()
	return o
}

// run reports whether an effect was missing in exact facts.
func (o options) run(ctx context.Context) (found bool, err error) {
	if o.facts {
		return false, serveFacts(os.Stdin, os.Stdout)
	}
	samples, err := o.samples()
	if err != nil {
		return false, err
	}
	judge, err := newJudge(ctx, o.judge)
	if err != nil {
		return false, err
	}
	defer judge.Close()
	boxes := openBoxes(ctx, o.workers)
	defer boxes.Close()
	e := examiner{judge, boxes, o.trace}
	if o.attacks != "" {
		return false, e.prove(ctx, os.Stdout, samples, o.attacks)
	}
	var known openFindings
	if o.open != "" {
		if known, err = readOpen(o.open); err != nil {
			return false, err
		}
	}
	start := time.Now()
	r := report{known: known}
	for one := range e.ExamineAll(ctx, samples) {
		if one.err != nil {
			return false, one.err
		}
		r.add(one)
		if o.trace {
			text, _ := json.MarshalIndent(map[string]any{"script": one.text(), "facts": one.Facts, "effects": one.Trace.Effects, "missing": one.Missing}, "", "  ")
			fmt.Println(string(text))
		}
		if o.exact > 0 && r.exact >= o.exact || o.last > 0 && time.Since(start) > o.last {
			break
		}
	}
	took := time.Since(start)
	groups, err := e.causes(r.findings)
	r.print(os.Stdout, groups[:min(o.show, len(groups))], took)
	return len(r.findings) > 0, errors.Join(err, ctx.Err())
}

// MinimiseAll minimises several findings at the same time.
func (e examiner) MinimiseAll(findings []result) ([]result, error) {
	var group sync.WaitGroup
	errs := make([]error, len(findings))
	slots := make(chan struct{}, 2*runtime.NumCPU())
	for i := range findings {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			findings[i], errs[i] = e.Minimise(findings[i])
		})
	}
	group.Wait()
	return findings, errors.Join(errs...)
}

// samples returns the scripts of the file, or generated ones.
func (o options) samples() (iter.Seq[sample], error) {
	var scripts iter.Seq[string]
	if o.file != "" {
		all, err := readScripts(o.file)
		if err != nil {
			return nil, err
		}
		scripts = func(yield func(string) bool) {
			for _, s := range all {
				if !yield(s) {
					return
				}
			}
		}
	} else {
		if o.scripts == 0 && o.exact == 0 && o.last == 0 {
			return nil, errors.New("-n 0 needs -exact or -for: else it does not end")
		}
		g, err := newGenerator(rand.New(rand.NewPCG(o.seed, 1)))
		if err != nil {
			return nil, err
		}
		scripts = func(yield func(string) bool) {
			for i := 0; (i < o.scripts || o.scripts == 0) && yield(g.Script()); i++ {
			}
		}
	}
	return func(yield func(sample) bool) {
		for s := range scripts {
			if !yield(sample{Script: s}) || o.dash && !yield(sample{Script: s, Dash: true}) {
				return
			}
		}
	}, nil
}

func readScripts(path string) (scripts []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s string
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read %s: each line is a script as a JSON string: %w", path, err)
		}
		scripts = append(scripts, s)
	}
	return scripts, lines.Err()
}
