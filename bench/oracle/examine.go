//go:build linux && amd64

package main

import (
	"context"
	"iter"
	"runtime"
	"strings"
	"sync"
)

// sample is a script to examine.
type sample struct {
	// ID is its name in a corpus. Optional.
	ID     string
	Script string
	// Dash has it run by dash, and judged as what the sh of a call does.
	Dash bool
	// Before makes files for it.
	Before string
}

// text is the script that bash runs and that is judged.
func (s sample) text() string {
	if !s.Dash {
		return s.Script
	}
	return "sh -c '" + strings.ReplaceAll(s.Script, "'", `'\''`) + "'"
}

// result is what is known of a sample, or why nothing is.
type result struct {
	sample
	Facts
	Trace   Trace
	Missing []Effect
	err     error
}

// examiner judges scripts and runs those whose facts are exact, or all of them.
type examiner struct {
	judge judge
	boxes *boxes
	all   bool
}

// Examine returns what is missing in the facts of a script.
func (e examiner) Examine(s sample) (r result) {
	r.sample = s
	r.Facts, r.err = e.judge.Facts(s.text())
	if r.err != nil || !r.Exact && !e.all {
		return r
	}
	r.Trace, r.err = e.boxes.Run(order{s.Before, s.text()})
	r.Missing = compare(r.Facts, r.Trace)
	return r
}

// ExamineAll examines several samples at the same time. The first error is the last result.
func (e examiner) ExamineAll(ctx context.Context, samples iter.Seq[sample]) iter.Seq[result] {
	return func(yield func(result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		in, out := make(chan sample), make(chan result)
		var group sync.WaitGroup
		for range 2 * runtime.NumCPU() { // the boxes bound what runs
			group.Go(func() {
				for s := range in {
					out <- e.Examine(s)
				}
			})
		}
		group.Go(func() {
			defer close(in)
			for s := range samples {
				select {
				case in <- s:
				case <-ctx.Done():
					return
				}
			}
		})
		go func() {
			group.Wait()
			close(out)
		}()
		defer func() {
			cancel()
			for range out { // the workers end
			}
		}()
		for r := range out {
			if !yield(r) || r.err != nil {
				return
			}
		}
	}
}
