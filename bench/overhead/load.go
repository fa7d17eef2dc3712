package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

// loadManifest is an agent whose model asks for two calls and ends; each call is
// a process.
//
//go:embed load.yaml
var loadManifest string

const (
	// loadSteps are the requests to the model of each run.
	loadSteps = 3
	// loadTimeout bounds all runs of a load.
	loadTimeout = 10 * time.Minute
	// followEvery chooses the runs whose events are followed while they happen,
	// and followFrom the first of them: those before begin at once.
	followEvery, followFrom = 28, 100
	// probeEvery is the time between two changes of the object by which watches
	// are measured.
	probeEvery = 50 * time.Millisecond
)

// load is many runs at once, and those who look on.
type load struct {
	plane  *plane
	client *client.Client
	runs   int

	begin, end time.Time
	// cpu is what agentd and the programs of its runs have used meanwhile.
	cpu time.Duration
	// ended are the runs as a watch saw them last, and when.
	ended map[string]client.Object
	seen  map[string]time.Time
	// ends is how long the end of a run took from its journal to the watch.
	ends []time.Duration

	mu     sync.Mutex
	events []time.Duration // from the journal to a stream
	probes []probe
	peak   float64
}

// probe is a write and the watch that shows it. The change happens between the
// sending of the write and its answer.
type probe struct{ sent, answered, seen time.Time }

func (p probe) fromSent() time.Duration { return p.seen.Sub(p.sent) }

// fromAnswer is 0 for a change that was seen before who made it had the answer.
func (p probe) fromAnswer() time.Duration { return max(0, p.seen.Sub(p.answered)) }

func newLoad(ctx context.Context, p *plane, runs int) (*load, error) {
	if _, err := p.apply(ctx, loadManifest, strings.Count(loadManifest, "kind:")); err != nil {
		return nil, err
	}
	if _, _, err := p.verb(ctx, "wait", "agent/worker", "--for=condition=Ready", "--timeout", "30s"); err != nil {
		return nil, err
	}
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	return &load{plane: p, client: c, runs: runs, ended: map[string]client.Object{}, seen: map[string]time.Time{}}, nil
}

func (l *load) close() { l.client.Close() }

func loadName(i int) string { return fmt.Sprintf("load-%d", i) }

// run applies all runs by one command and waits until a watch has shown the end
// of each. The time goes from the start of the command to the last end.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	look, stop := context.WithCancel(ctx)
	defer stop()
	var b strings.Builder
	for i := range l.runs {
		fmt.Fprintf(&b, "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: %s}\nspec: {agentRef: {name: worker}, prompt: go}\n---\n", loadName(i))
	}
	var lookers sync.WaitGroup
	var errs [3]error
	lookers.Go(func() { errs[0] = l.probe(look) })
	lookers.Go(func() { errs[1] = l.follow(look) })
	lookers.Go(func() { l.weigh(look) })
	applied := make(chan error, 1)
	l.begin = time.Now()
	before := l.plane.cpu()
	go func() { _, err := l.plane.apply(ctx, b.String(), l.runs); applied <- err }()
	errs[2] = l.watch(ctx)
	l.end = time.Now()
	l.cpu = l.plane.cpu() - before
	stop()
	lookers.Wait()
	return errors.Join(errs[0], errs[1], errs[2], <-applied)
}

// watch waits until every run has ended.
func (l *load) watch(ctx context.Context) error {
	o := client.WatchOptions{ListOptions: client.ListOptions{Kind: "Run"}, Empty: func() bool { return true }}
	return l.client.Watch(ctx, o, func(c client.Change) bool {
		name := c.Object.Name()
		if _, known := l.ended[name]; known || !over(c.Object) {
			return true
		}
		l.ended[name], l.seen[name] = c.Object, time.Now()
		return len(l.ended) < l.runs
	})
}

func over(run client.Object) bool {
	switch run.Text("status", "phase") {
	case "Succeeded", "Failed", "Cancelled":
		return true
	}
	return false
}

// probe changes an object again and again, and takes the time until a watch
// shows each change.
func (l *load) probe(ctx context.Context) error {
	const mark = "bench"
	ref := client.Ref{Kind: "Agent", Name: "one"}
	object := client.Object{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Agent", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"modelRef": map[string]any{"name": "none"}}}
	if _, err := l.client.Apply(ctx, object, client.WriteOptions{}); err != nil {
		return err
	}
	arrived := make(chan time.Time, 1)
	want := make(chan string, 1)
	var group sync.WaitGroup
	group.Go(func() {
		next := ""
		o := client.WatchOptions{ListOptions: client.ListOptions{Kind: "Agent", Fields: "metadata.name=one"}}
		_ = l.client.Watch(ctx, o, func(c client.Change) bool { // ends with the context
			now := time.Now()
			select {
			case next = <-want:
			default:
			}
			if next != "" && c.Object.Annotations()[mark] == next {
				next = ""
				arrived <- now
			}
			return true
		})
	})
	defer group.Wait()
	for i := 1; ; i++ {
		value := fmt.Sprint(i)
		want <- value
		p := probe{sent: time.Now()}
		if _, err := l.client.Merge(ctx, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{mark: value}}}, client.WriteOptions{As: "label"}); err != nil {
			return unlessOver(ctx, err)
		}
		p.answered = time.Now()
		select {
		case p.seen = <-arrived:
			l.mu.Lock()
			l.probes = append(l.probes, p)
			l.mu.Unlock()
		case <-ctx.Done():
			return nil
		}
		if err := sleep(ctx, probeEvery); err != nil {
			return unlessOver(ctx, err)
		}
	}
}

// unlessOver lets an error pass that is not the end of the looking on.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // whoever looked on was stopped
	}
	return err
}

// follow follows the events of some runs from before they begin.
func (l *load) follow(ctx context.Context) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for i := followFrom; i < l.runs; i += followEvery {
		group.Go(func() {
			if err := l.followOne(ctx, loadName(i)); unlessOver(ctx, err) != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("follow run %s: %w", loadName(i), err))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// followOne counts those events alone that happened while the stream stood: it
// was told before that the run waits.
func (l *load) followOne(ctx context.Context, name string) error {
	ref := client.Ref{Kind: "Run", Name: name}
	if err := l.client.Await(ctx, ref, client.Exists); err != nil {
		return err
	}
	waited := false
	var lags []time.Duration
	end, err := l.client.Events(ctx, client.EventsOptions{Run: ref, Follow: true}, func(r client.Record) error {
		switch now := time.Now(); {
		case r.Waiting != nil:
			waited = true
		case r.Event != nil && waited:
			lags = append(lags, now.Sub(r.Event.Time))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if end.Phase != "Succeeded" {
		return fmt.Errorf("the stream ends with %+v", end)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, lags...)
	return nil
}

func (l *load) weigh(ctx context.Context) {
	for sleep(ctx, 200*time.Millisecond) == nil {
		l.peak = max(l.peak, l.plane.weigh())
	}
}

// verify holds every run to its journal: the chain is whole, the status is what
// the events say, and each step and call happened once.
func (l *load) verify(ctx context.Context) error {
	if len(l.events) == 0 || len(l.probes) == 0 {
		return fmt.Errorf("%d events and %d writes were seen while runs went on: nothing to tell lags by", len(l.events), len(l.probes))
	}
	for i := range l.runs {
		run := l.ended[loadName(i)]
		dir := run.Text("status", "journal", "path")
		c, err := readChain(dir)
		if err != nil {
			return fmt.Errorf("run %s: %w", loadName(i), err)
		}
		v, err := runs.View(ctx, l.plane.folders.state, c.run)
		if err != nil {
			return fmt.Errorf("run %s: %w", loadName(i), err)
		}
		switch {
		case v.Phase != "Succeeded" || v.Phase != run.Text("status", "phase"):
			err = fmt.Errorf("the journal says %s, the status %s", v.Phase, run.Text("status", "phase"))
		case v.Steps != loadSteps || int64(v.Steps) != run.Number("status", "steps"):
			err = fmt.Errorf("the journal has %d steps, the status %d, want %d", v.Steps, run.Number("status", "steps"), loadSteps)
		case c.types["tool.result"] != loadSteps-1 || c.types[string(event.TypeRunStarted)] != 1:
			err = fmt.Errorf("events of the journal: %v", c.types)
		case c.events != run.Number("status", "journal", "lastSeq") || c.head != run.Text("status", "journal", "headHash"):
			err = fmt.Errorf("the journal ends with event %d, %s; the status says %v", c.events, c.head, run.Field("status", "journal"))
		case v.Finished.Output != run.Text("status", "output"):
			err = fmt.Errorf("the answer is %q, the status says %q", v.Finished.Output, run.Text("status", "output"))
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", loadName(i), err)
		}
		l.ends = append(l.ends, l.seen[loadName(i)].Sub(v.LastTime))
	}
	return nil
}

// report adds the figures of the load.
func (l *load) report(r *report) {
	took := l.end.Sub(l.begin).Seconds()
	r.alone(fmt.Sprintf("%d runs of %d steps, 64 at once, per core", l.runs, loadSteps), "runs/s", float64(l.runs)/took/float64(runtime.NumCPU()), atLeast(10))
	r.alone("CPU of agentd and its programs for one of them", "ms", ms(l.cpu)/float64(l.runs), nil)
	r.alone("agentd, peak RSS meanwhile", "MB", l.peak, nil)
	r.alone("event of a run, journal to stream p99", "ms", ms(percentile(l.events, 99)), atMost(100))
	r.alone("object, answered write to a watch p99", "ms", ms(percentile(each(l.probes, probe.fromAnswer), 99)), atMost(100))
	r.alone("object, sending of the write to a watch p99", "ms", ms(percentile(each(l.probes, probe.fromSent), 99)), nil)
	r.alone("end of a run, journal to a watch p50", "ms", ms(percentile(l.ends, 50)), nil)
	r.alone("end of a run, journal to a watch p99", "ms", ms(percentile(l.ends, 99)), nil)
	r.note("%d runs in %.1f s, every journal verified and equal to its status; lags of %d events and %d writes while they went on, over loopback, and this program shares the machine", l.runs, took, len(l.events), len(l.probes))
}
