// Package agenttest carries out Tests: it runs agents with scripted or recorded models on files of their own, and judges what is expected of the runs.
//
// Each case has a state folder and a copy of its files for itself, and its run is the one
// that agentctl run executes: nothing of the engine is replaced. What cases share is what
// does not change: the manifests that were read, with their compiled policies and
// expectations, and the files that copies are made of. Programs are not shared: each runs in
// a sandbox of one run, and what it did there is gone with the run.
package agenttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/agenttest/engine"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/manifest"
)

// Options select the cases and how they are run. Engine is required.
type Options struct {
	// Engine executes the runs, and has the manifests; see runner.Tests.
	Engine engine.Engine
	// Names select tests as TEST, and cases as TEST/CASE; none: all.
	Names []string
	// Only selects by the name, as TEST or TEST/CASE. Optional.
	Only *regexp.Regexp
	// Parallel is the number of cases that are run at the same time; 0 is one for each
	// processor.
	Parallel int
	// FailFast runs no further case once one has failed.
	FailFast bool
	// Update runs the cases that have a cassette for real, and records them again.
	Update bool
	// Models and Policies are the columns of a comparison: every case is run with each Model
	// and each policy of them. A Model answers in place of that of the test, and may be one
	// that is asked over the network; a policy narrows the runs, and NoPolicy is none.
	Models, Policies []string
	// Coverage reports what the runs have exercised.
	Coverage bool
	// Keep is a folder that is given the state folders of cases that failed; "" keeps none.
	Keep string
	// Progress is called when a case has ended, by one goroutine at a time. Optional.
	Progress func(Progress)
}

// Progress is how far a set of tests is.
type Progress struct {
	Done, Total, Failed int
	// Case is the one that has ended.
	Case *report.Case
}

// NoPolicy is the word for a column without a further policy.
const NoPolicy = "none"

// set is the tests of one call.
type set struct {
	*Options
	manifests *manifest.Set
	catalog   *admission.Catalog
	fixtures  *fixtures
	coverage  *coverage
	expected  *expectations
	// states is the folder for the state folders of the runs.
	states string
}

// Run carries out the selected cases, in every column. Its errors are a *reason.UsageError,
// about the machine, or the cause of a context that has ended: then there is no report.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	began := time.Now()
	s := &set{Options: &o}
	s.manifests, s.catalog = o.Engine.Manifests()
	cases, err := s.choose()
	if err != nil {
		return nil, err
	}
	columns, err := s.columns()
	if err != nil {
		return nil, err
	}
	top, err := folder(o.Keep)
	if err != nil {
		return nil, err
	}
	s.fixtures, s.expected, s.states = newFixtures(filepath.Join(top, "files")), newExpectations(s.catalog), filepath.Join(top, "runs")
	if o.Keep != "" {
		s.states = o.Keep
	}
	if o.Coverage {
		s.coverage = newCoverage(s.catalog)
	}
	out := s.run(ctx, cases, columns)
	if err := errors.Join(context.Cause(ctx), fstree.Remove(top)); err != nil {
		return nil, err
	}
	out.Sum()
	if s.coverage != nil {
		out.Coverage = s.coverage.report()
	}
	out.DurationMs = time.Since(began).Milliseconds()
	return out, nil
}

// folder makes the folder of a set of tests, and that of the runs to keep.
func folder(keep string) (string, error) {
	if keep != "" {
		if err := os.MkdirAll(keep, 0o700); err != nil {
			return "", reason.Usagef("keep the failed cases: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "agentctl-test-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the tests: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("make a folder for the tests: %w", err)
	}
	return dir, nil
}

// run runs the cases, several at a time; results are in their order.
func (s *set) run(ctx context.Context, cases []admission.PlannedCase, columns []report.Column) *report.Report {
	out := &report.Report{Columns: columns, Results: make([]report.Case, len(columns)*len(cases))}
	var next, failed atomic.Int64
	var workers sync.WaitGroup
	tell := s.teller(len(out.Results))
	for range min(s.parallel(), len(out.Results)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(out.Results) {
					return
				}
				t := &trial{set: s, PlannedCase: &cases[i%len(cases)], column: &columns[i/len(cases)]}
				if s.FailFast && failed.Load() > 0 {
					out.Results[i] = t.left("an earlier case has failed (--fail-fast)")
					continue
				}
				out.Results[i] = t.run(ctx)
				if !out.Results[i].Pass {
					failed.Add(1)
				}
				tell(&out.Results[i])
			}
		})
	}
	workers.Wait()
	return out
}

func (s *set) parallel() int {
	if s.Parallel > 0 {
		return s.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// teller returns what reports that a case has ended.
func (s *set) teller(total int) func(*report.Case) {
	if s.Progress == nil {
		return func(*report.Case) {}
	}
	var mu sync.Mutex
	p := Progress{Total: total}
	return func(c *report.Case) {
		mu.Lock()
		defer mu.Unlock()
		p.Done++
		if !c.Pass {
			p.Failed++
		}
		p.Case = c
		s.Progress(p)
	}
}
