// Package policytest runs the test cases of policies with the engine that judges runs, and reports what the cases do not cover.
//
// A case is a call with the decision it must get. It passes or fails. Over all
// cases of a policy, coverage lists rules that never decided or never stayed
// silent, and mutation lists changes to the policy that no case would notice.
package policytest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
)

// Subject is a policy with its cases.
type Subject struct {
	Policy *v1alpha1.Policy
	// Compiled against Options.Tools, without errors.
	Compiled *policy.Compiled
	// Where returns the position of a field of the policy.
	Where func(path string) manifest.Position
	Cases []Case
}

// Case is a case and its position.
type Case struct {
	v1alpha1.PolicyTest
	Position manifest.Position
}

// Options say how cases are judged.
type Options struct {
	// Tools a call may be of.
	Tools []policy.Tool
	// Agents by name, for cases that name one.
	Agents map[string]policy.Agent
	// Check validates arguments against the schema of a tool: a call that no run would
	// decide about tests nothing. Optional.
	Check func(tool string, args json.RawMessage) error
	// Only picks cases by name; coverage is left out then. Optional.
	Only *regexp.Regexp
	// Mutate tries which mistakes in a policy its cases notice.
	Mutate bool
	// Clock times the cases; nil: they take no time.
	Clock func() time.Time
}

func (o *Options) stopwatch() func() time.Duration {
	if o.Clock == nil {
		return func() time.Duration { return 0 }
	}
	began := o.Clock()
	return func() time.Duration { return o.Clock().Sub(began) }
}

// Run judges all cases. An error is about the machine, not about a case.
func Run(ctx context.Context, subjects []Subject, opts Options) (*Report, error) {
	dir, err := newFolders()
	if err != nil {
		return nil, fmt.Errorf("make a folder for the cases: %w", err)
	}
	defer dir.remove()
	report := &Report{Policies: []PolicyReport{}}
	for i := range subjects {
		s := &subjects[i]
		b := &bench{opts: &opts, subject: s, dirs: dir, judges: newJudges(s.Compiled.Enforced())}
		p, err := b.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", s.Policy.Name, err)
		}
		report.add(p)
	}
	return report, ctx.Err()
}

// run judges the cases of one policy.
func (b *bench) run(ctx context.Context) (PolicyReport, error) {
	p := PolicyReport{Name: b.subject.Policy.Name, Position: b.subject.Where(""), Cases: []CaseResult{}}
	for i := range b.subject.Cases {
		c := &b.subject.Cases[i]
		if b.opts.Only != nil && !b.opts.Only.MatchString(c.Name) {
			continue
		}
		t, err := b.prepare(c)
		if err != nil {
			return p, fmt.Errorf("case %q: %w", c.Name, err)
		}
		b.trials = append(b.trials, t)
	}
	p.Cases = make([]CaseResult, len(b.trials))
	parallel(ctx, len(b.trials), func(i int) { p.Cases[i] = b.result(ctx, b.trials[i]) })
	if b.opts.Only == nil && len(b.trials) > 0 {
		c := b.coverage()
		p.Coverage = &c
	}
	if b.opts.Mutate && len(b.trials) > 0 && p.failed() == 0 {
		m := b.mutate(ctx)
		p.Mutation = &m
	}
	return p, nil
}

// parallel calls do for 0 to n-1, several at a time, and returns when all have
// returned. Once the context has ended the rest is left out.
func parallel(ctx context.Context, n int, do func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	workers.Wait()
}
