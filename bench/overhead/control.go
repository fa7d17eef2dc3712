package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// controlObjects are applied by one command, and controlRuns lived.
	controlObjects = 1000
	controlRuns    = 1000
	// idleFor is how long agentd is left alone before it is weighed: what it does
	// after its start is over by then.
	idleFor = 3 * time.Second
	// verbsPerRep are the verbs that one repetition times.
	verbsPerRep = 5
)

// controlTimes are the figures of one repetition.
type controlTimes struct {
	// first is agentctl's first apply ever, which starts agentd.
	first time.Duration
	// restart is agentd's start on a folder that it has used before.
	restart time.Duration
	// idle is its memory in MB, loaded with the objects of one manifest.
	idle float64
	// apply and get are single verbs while agentd runs.
	apply, get []time.Duration
}

// measureControl measures agentd and the verbs that ask it, as processes: what
// the start of a program costs is in every figure of a verb.
func measureControl(ctx context.Context, b *bench, reps int) error {
	if _, err := os.Stat(agentdBeside(b.agentctl)); err != nil {
		b.report.note("not measured, there is no agentd beside agentctl: %v", err)
		return nil
	}
	var all []controlTimes
	for rep := range reps {
		got, err := b.controlTimes(ctx)
		if err != nil {
			return fmt.Errorf("repetition %d: %w", rep+1, err)
		}
		all = append(all, got)
		fmt.Fprint(b.progress, ".")
	}
	b.reportControl(all)
	if err := b.heavy(ctx); err != nil {
		return err
	}
	return leftBehind()
}

// reportControl adds the medians. Of the verbs each repetition has several.
func (b *bench) reportControl(all []controlTimes) {
	middle := func(figure func(controlTimes) float64) float64 { return percentile(each(all, figure), 50) }
	var applies, gets []float64
	for _, c := range all {
		applies, gets = append(applies, each(c.apply, ms)...), append(gets, each(c.get, ms)...)
	}
	r := b.report
	r.alone("agentd, restart to ready", "ms", middle(func(c controlTimes) float64 { return ms(c.restart) }), atMost(600))
	r.alone("agentd, idle RSS", "MB", middle(func(c controlTimes) float64 { return c.idle }), atMost(120))
	r.alone("first apply ever, agentd started by it", "ms", middle(func(c controlTimes) float64 { return ms(c.first) }), atMost(1000))
	r.alone("apply of one manifest", "ms", percentile(applies, 50), atMost(60))
	r.alone("get", "ms", percentile(gets, 50), atMost(50))
}

// controlTimes measures what needs a folder of its own each time.
func (b *bench) controlTimes(ctx context.Context) (got controlTimes, err error) {
	p, err := b.newPlane()
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if got.first, err = p.apply(ctx, agentManifest("one", ""), 1); err != nil {
		return got, err
	}
	if err := p.endDetached(); err != nil {
		return got, err
	}
	if got.restart, err = p.start(ctx); err != nil {
		return got, err
	}
	if err := sleep(ctx, idleFor); err != nil {
		return got, err
	}
	got.idle = p.weigh()
	for i := range verbsPerRep {
		// Each time it is another object than before: one that is the same costs no write.
		took, err := p.apply(ctx, agentManifest("one", fmt.Sprintf("as of time %d", i)), 1)
		if err != nil {
			return got, err
		}
		got.apply = append(got.apply, took)
		took, out, err := p.verb(ctx, "get", "agents")
		if err != nil {
			return got, err
		}
		if !strings.Contains(string(out), "\none ") {
			return got, fmt.Errorf("get does not show what was applied:\n%s", tail(out))
		}
		got.get = append(got.get, took)
	}
	return got, nil
}

// heavy measures many objects and many runs, once: they say of themselves whether
// anything was lost.
func (b *bench) heavy(ctx context.Context) (err error) {
	p, err := b.newPlane()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, err := p.start(ctx); err != nil {
		return err
	}
	took, err := p.apply(ctx, manyAgents(controlObjects), controlObjects)
	if err != nil {
		return err
	}
	b.report.alone(fmt.Sprintf("%d objects applied by one command", controlObjects), "s", took.Seconds(), atMost(5))
	fmt.Fprint(b.progress, ".")
	l, err := newLoad(ctx, p, controlRuns)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.run(ctx); err != nil {
		return err
	}
	fmt.Fprint(b.progress, ".")
	if err := l.verify(ctx); err != nil {
		return err
	}
	l.report(b.report)
	return nil
}

// agentManifest is an agent whose model is named and not there: what is applied
// is judged and gets a status, as every object does.
func agentManifest(name, description string) string {
	return fmt.Sprintf("apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: %s}\nspec: {modelRef: {name: none}, description: %q}\n", name, description)
}

func manyAgents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(agentManifest(fmt.Sprintf("many-%d", i), "one of many") + "---\n")
	}
	return b.String()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
