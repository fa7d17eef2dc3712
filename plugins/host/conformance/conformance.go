// Package conformance tries whether a program keeps the promises of a tool, in whatever language it is written.
//
// A plugin is tried through package host, as agentctl itself calls it. What no
// call of an author's own tools can show is tried with probe tools, which a
// program serves only when it is asked to; docs/plugins.md describes them.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Outcome is what came of a check.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	// Skipped: the program offers no way to try it.
	Skipped Outcome = "skipped"
)

// Check is one promise that was tried.
type Check struct {
	Name string `json:"name"`
	// Promise is what a program must do.
	Promise string  `json:"promise"`
	Outcome Outcome `json:"outcome"`
	// Problem is what the program did instead, or why the check could not be run; else
	// empty.
	Problem string `json:"problem"`
	// Mend is how to fix the program; empty unless the check failed.
	Mend           string `json:"mend"`
	DurationMicros int64  `json:"durationMicros"`
}

// Report is what the checks have shown.
type Report struct {
	Program string `json:"program"`
	// Tools the program serves, without the probes.
	Tools   []string `json:"tools"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Checks  []Check  `json:"checks"`
}

// Sample is a call of one of the author's own tools.
type Sample struct {
	Tool string
	Args json.RawMessage
}

// Options say what to try.
type Options struct {
	// Name is what the report calls the program. Required.
	Name string
	// Launch starts the program, as host.Options.Launch does. Required. Env is the
	// environment with which it does.
	Launch func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)
	Env    []string
	// Schema returns what is wrong with the JSON Schema of a tool, beyond being a JSON
	// object whose type is object. Optional.
	Schema func(schema []byte) error
	// Workspace is handed to the calls.
	Workspace string
	// Contained is true if process ids of the program are not those of this host.
	Contained bool
	// Good are calls that must be answered without an error, Slow such that take
	// long: they must end at their deadline and when they are cancelled.
	Good, Slow []Sample
	// Parallel is how many checks are tried at once; default 4.
	Parallel int
}

// patience bounds each step of a check: a start, a call, an end.
const patience = 30 * time.Second

// check is a promise and the way to try it.
type check struct {
	name, promise, fix string
	// probe is the probe tool it needs, or "".
	probe string
	// attempts is how often the check may be tried, default once: a check that measures
	// time may fail because of a busy machine.
	attempts int
	try      func(ctx context.Context, t *trial) error
}

// skipError: the check could not be run.
type skipError struct{ why string }

func (e skipError) Error() string { return e.why }

// Run tries a plugin program. It starts it once for each check, so that none can
// spoil another, and returns when all those processes have ended. When ctx ends,
// what has not been tried is skipped.
func Run(ctx context.Context, o Options) *Report {
	t := &trial{Options: o}
	r := &Report{Program: o.Name, Tools: []string{}}
	first := t.do(ctx, handshakeCheck)
	r.add(first)
	if first.Outcome == Failed {
		return r
	}
	for _, tool := range t.tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	checks := slices.Concat(pluginChecks(), sampleChecks(o))
	done := make([]Check, len(checks))
	var wg sync.WaitGroup
	room := make(chan struct{}, max(o.Parallel, 4))
	for i := range checks {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			done[i] = t.do(ctx, checks[i])
		})
	}
	wg.Wait()
	for _, c := range done {
		r.add(c)
	}
	return r
}

func (r *Report) add(c Check) {
	r.Checks = append(r.Checks, c)
	switch c.Outcome {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	case Skipped:
		r.Skipped++
	}
}

// trial is the program under test.
type trial struct {
	Options
	// tools and probes are what the program served at its first start.
	tools  []host.ToolInfo
	probes map[string]bool
}

// do tries one promise.
func (t *trial) do(ctx context.Context, c check) Check {
	done := Check{Name: c.name, Promise: c.promise, Outcome: Passed}
	begin := time.Now()
	err := ctx.Err()
	switch {
	case err != nil:
		err = skipError{"the test was stopped"}
	case c.probe != "" && !t.probes[c.probe]:
		err = skipError{fmt.Sprintf("it serves no tool %s when %s is 1", c.probe, toolpb.ProbesKey)}
	default:
		err = c.try(ctx, t)
		for n := 1; n < c.attempts && err != nil; n++ {
			err = c.try(ctx, t)
		}
	}
	done.DurationMicros = time.Since(begin).Microseconds()
	if err == nil {
		return done
	}
	done.Outcome, done.Problem, done.Mend = Failed, err.Error(), c.fix
	if _, skipped := errors.AsType[skipError](err); skipped {
		done.Outcome, done.Mend = Skipped, ""
	}
	if e, ok := errors.AsType[*host.Error](err); ok && e.Kind == host.KindStart {
		done.Mend = "name a program that is there and may be executed, with a #! line or built for this machine"
	}
	return done
}

// start starts the program with its probes.
func (t *trial) start(ctx context.Context) (*host.Plugin, error) {
	return host.Start(ctx, host.Options{Name: t.Name, StartTimeout: patience, Launch: func(l hclog.Logger, c *exec.Cmd, dir string) (runner.Runner, error) {
		c.Env = append(c.Env, toolpb.ProbesKey+"=1")
		return t.Launch(l, c, dir)
	}})
}

// with starts the program for f and ends it afterwards.
func (t *trial) with(ctx context.Context, f func(p *host.Plugin) error) error {
	p, err := t.start(ctx)
	if err != nil {
		return err
	}
	err = f(p)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if left := p.Close(end); err == nil {
		err = left
	}
	return err
}

// call makes a call that must be answered with a result.
func (t *trial) call(ctx context.Context, p *host.Plugin, tool, args string) (*host.CallResult, error) {
	return p.Call(ctx, host.CallRequest{Tool: tool, Args: []byte(args), ID: "test", Run: "test", Workspace: t.Workspace, Timeout: patience}, nil)
}
