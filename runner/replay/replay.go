// Package replay plays the environment of a recorded run, so that the real loop runs again and every difference is found.
//
// The loop is given players instead of a model, a gate, an approver and tools: each
// answers as recorded. The loop itself is the current one: it checks the calls, guards,
// counts, shortens and judges the answer as it does today. Each event that it emits is
// compared with the recording (tape.go); the first difference ends the replay.
//
// No player uses the machine it runs on: there is no clock but that of the recording, no file, no program and no network.
package replay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
)

// patience bounds every wait for another call of the same step: a replay that
// goes as recorded waits for what is under way.
const patience = 5 * time.Second

// Options are what a Player does not find in the recording.
type Options struct {
	// Check is that of the toolbox: calls are checked again. Required.
	Check func(message.CallRequest) (message.Checked, error)
	// Roughly is set if the size of the request before the conversation is not known
	// exactly, and so the estimates of requests are not compared.
	Roughly bool
	// Patience bounds waits; the default is five seconds.
	Patience time.Duration
}

// Player plays everything around one run.
type Player struct {
	Options
	file     string
	requests []cassette.Request
	// begin is the place of the event that begins the newest turn.
	begin    int
	finished event.RunFinished
	cancel   context.CancelCauseFunc

	mu   sync.Mutex
	tape tape
	// changed is closed, and replaced, whenever the tape has moved.
	changed  chan struct{}
	diverged *Divergence
	// asked counts the requests that were played.
	asked int
	clock clock
	ids   map[string][]string
	spare int
	// decisions are the newest ones about calls.
	decisions map[string]message.Decision
	// notes are what the loop adds to the result of a call that it read otherwise.
	notes map[string]string

	// emitted are the events so far, in the order of the recording; run is their fold.
	emitted []event.Event
	run     view.Run
}

// New returns a player of a cassette whose run has ended. Cancel ends the context of the
// loop.
func New(c *cassette.Cassette, cancel context.CancelCauseFunc, o Options) (*Player, error) {
	if !c.Ended() {
		return nil, &cassette.DamageError{File: c.Name, Line: c.Line(len(c.Events) - 1), Problem: "the recorded run has no end", Hint: "record it with agentctl resume --record"}
	}
	entries := c.Life()
	begin := max(0, slices.IndexFunc(entries, func(e cassette.Entry) bool { return !e.Earlier }))
	p := &Player{
		Options: o, file: c.Name, requests: cassette.Requests(entries[begin:]), begin: begin, cancel: cancel,
		changed: make(chan struct{}), ids: map[string][]string{}, decisions: map[string]message.Decision{}, notes: map[string]string{},
	}
	if p.Patience == 0 {
		p.Patience = patience
	}
	if len(p.requests) == 0 {
		return nil, &cassette.DamageError{File: c.Name, Line: entries[len(entries)-1].Line, Problem: "the recorded run ended before the model was asked anything: there is nothing to replay", Hint: "record it again with agentctl run --record"}
	}
	p.finished, _ = entries[len(entries)-1].Data.(event.RunFinished) // it has ended
	p.tape.load(entries)
	p.tape.stop = p.stopsAfter()
	p.collectIDs()
	p.clock.at(entries[begin].Time)
	p.emit()
	return p, nil
}

// View is the beginning of the run, or of its newest turn, from which the loop continues.
func (p *Player) View() (*view.Run, error) {
	v := &view.Run{}
	for _, e := range p.tape.entries[:p.begin+1] {
		e.Seq = 0
		if err := v.Apply(e.Event); err != nil {
			return nil, &cassette.DamageError{File: p.file, Line: e.Line, Problem: err.Error(), Hint: "record the run anew with agentctl run --record"}
		}
	}
	return v, nil
}

// Now is the time of the recording.
func (p *Player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.now()
}

// NewID returns the id that the recorded run has used.
func (p *Player) NewID(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.ids[kind]; len(left) > 0 {
		p.ids[kind] = left[1:]
		return left[0]
	}
	p.spare++
	return fmt.Sprintf("%s-new-%d", kind, p.spare)
}

// collectIDs lists the ids that the loop has made, in the order it made them.
func (p *Player) collectIDs() {
	seen := map[string]bool{}
	for i := range p.tape.entries {
		e := &p.tape.entries[i]
		if !e.made {
			continue
		}
		switch e.Data.(type) {
		case event.ModelRequest, event.UserMessage, event.MessageReceived:
			p.ids["msg"] = append(p.ids["msg"], e.Message)
		}
		if e.Part != "" && !seen[e.Part] {
			seen[e.Part] = true
			p.ids["part"] = append(p.ids["part"], e.Part)
		}
	}
}

// Told returns the events so far, in the order of the recording.
func (p *Player) Told() []event.Event { return p.emitted }

// Run is the fold of the events so far.
func (p *Player) Run() *view.Run { return &p.run }

// Recorded is the recorded end of the run.
func (p *Player) Recorded() event.RunFinished { return p.finished }

// Copy is that of view.Run.
func (p *Player) Copy(name string) *message.ChildRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.Copy(name)
}

// emit records every event that is due. The caller holds mu, or has the only reference.
func (p *Player) emit() {
	for _, e := range p.tape.due() {
		p.publish(e)
	}
}

func (p *Player) publish(e event.Event) {
	e.Seq, e.Prev = int64(len(p.emitted)+1), ""
	p.emitted = append(p.emitted, e)
	if err := p.run.Apply(e); err != nil {
		p.run.Warnings = append(p.run.Warnings, err.Error())
	}
}

// End compares the end of the run with the recorded end, and records it. The returned view
// is the whole run, up to a divergence if there is one.
func (p *Player) End(f event.RunFinished) (*view.Run, *Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := &p.tape.entries[len(p.tape.entries)-1]
	if p.diverged == nil {
		if left := p.tape.left(); left != nil {
			_ = p.diverge(p.ended(left, f))
		} else {
			_ = p.compare(last, event.Event{Data: p.exit(f)}, last.Event)
		}
	}
	if p.diverged == nil {
		last.done = true
		p.emit()
		return &p.run, nil
	}
	d := p.diverged
	f = event.RunFinished{
		Phase: view.Failed, Reason: string(reason.ReplayDiverged), ExitCode: reason.ReplayDiverged.ExitCode(),
		Message: d.Error(), Hint: d.hint(), Steps: p.run.Steps, Tokens: p.run.Tokens,
		DurationMs: p.run.Worked(p.run.LastTime).Milliseconds(),
	}
	if cost := p.run.Cost; !p.run.Unpriced && !p.run.Uncounted {
		f.Cost = &cost
	}
	p.publish(event.Event{Time: p.run.LastTime, Run: p.run.ID, Data: f})
	return &p.run, d
}

// exit gives a run that a signal stopped the exit code of that signal.
func (p *Player) exit(f event.RunFinished) event.RunFinished {
	if reason.Reason(f.Reason) == reason.Cancelled && p.finished.Reason == f.Reason {
		f.ExitCode = p.finished.ExitCode
	}
	return f
}

// cause is what stopped the recorded run.
func (p *Player) cause() error {
	return reason.New(reason.Reason(p.finished.Reason), "%s", p.finished.Message).WithHint("%s", p.finished.Hint)
}

// stopped reports whether the recorded run was stopped from outside.
func (p *Player) stopped() bool {
	r := reason.Reason(p.finished.Reason)
	return r == reason.Cancelled || r == reason.DeadlineExceeded
}

// stopsAfter returns the place of the last event before the run was stopped, or -1.
func (p *Player) stopsAfter() int {
	if !p.stopped() || p.requests[len(p.requests)-1].Output == nil {
		return -1
	}
	return p.tape.free()
}

// await waits until everything that was recorded before a place has happened.
func (p *Player) await(place int) error {
	return p.waitFor(nil, func() bool { return p.tape.reached(place) }, place)
}

// untilStopped waits for the recorded end of the run.
func (p *Player) untilStopped(ctx context.Context) error {
	if err := p.waitFor(ctx.Done(), func() bool { return false }, len(p.tape.entries)-1); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// waitFor waits for the tape to move until ready, or until done is closed. If that cannot
// happen any more, it is a divergence.
func (p *Player) waitFor(done <-chan struct{}, ready func() bool, place int) error {
	late := time.NewTimer(p.Patience)
	defer late.Stop()
	for {
		p.mu.Lock()
		changed, diverged, ok := p.changed, p.diverged, ready()
		p.mu.Unlock()
		switch {
		case diverged != nil:
			return diverged
		case ok:
			return nil
		}
		select {
		case <-changed:
		case <-done:
			return nil
		case <-late.C:
			p.mu.Lock()
			defer p.mu.Unlock()
			if left := p.tape.left(); left != nil {
				return p.diverge(p.missing(left))
			}
			return p.diverge(p.missing(&p.tape.entries[place]))
		}
	}
}

// moved wakes all that wait for the tape. The caller holds mu.
func (p *Player) moved() {
	close(p.changed)
	p.changed = make(chan struct{})
}
