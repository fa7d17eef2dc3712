package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// ReplayOptions say which recording is lived again. File is required.
type ReplayOptions struct {
	// File is the cassette.
	File string
	// Paths are manifests whose agent, tools and limits take the place of the
	// recorded ones; none: everything is as recorded. Stdin is read for "-".
	Paths []string
	Stdin io.Reader
	// Agent chooses among several agents in Paths; "" is the recorded one's name.
	Agent string
	// Events is told every event once and in order, before Replay returns.
	Events func(event.Event)
}

// Divergence is where a replay is not what was recorded.
type Divergence = replay.Divergence //nolint:errname // as there

// Replayed is a replay that has ended, whatever the end.
type Replayed struct {
	// Outcome is that of the recorded run, or ends with the reason ReplayDiverged;
	// its journal is the cassette.
	*Outcome
	// Divergence is the first difference, nil when there is none.
	Divergence *Divergence
	// Notes tell what the replay does not show.
	Notes []string
	// Version of agentctl that recorded, and when.
	Version, Recorded string
}

// Replay lives a recorded run again: the real loop with everything around it
// played from the cassette. It needs no key, network, program, workspace or state
// folder. The error is set when no replay came about: a *reason.UsageError or an
// *InvalidError (exit code 2), or an error with reason ReplayDiverged that names
// the damaged line (exit code 7).
func Replay(ctx context.Context, o ReplayOptions) (*Replayed, error) {
	c, err := openCassette(o.File)
	if err != nil {
		return nil, err
	}
	if len(o.Paths) == 0 {
		o.Paths = nil
	}
	r, err := replayCassette(ctx, c, &o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func openCassette(file string) (*cassette.Cassette, error) {
	c, err := cassette.Open(file)
	if _, damaged := errors.AsType[*cassette.DamageError](err); err != nil && !damaged {
		hint := "agentctl run --record FILE records a cassette"
		if strings.HasPrefix(file, "run/") {
			hint = "a cassette is a file: agentctl resume " + file + " --record FILE writes one of a run that has ended"
		}
		return nil, &reason.UsageError{Err: fmt.Errorf("cassette %w", err), Hint: hint}
	}
	return c, err
}

// replayCassette replays what has been read. Without options the recording is
// held against itself, and nobody watches.
func replayCassette(ctx context.Context, c *cassette.Cassette, o *ReplayOptions) (*Replayed, error) {
	if o == nil {
		o = &ReplayOptions{File: c.Name}
	}
	was, err := recordedPlan(c)
	if err != nil {
		return nil, err
	}
	now, drift, notes := was, []replay.Drift(nil), []string(nil)
	if o.Paths != nil {
		if now, notes, err = was.present(ctx, o); err != nil {
			return nil, err
		}
		drift = was.drift(now)
	}
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	toolbox, err := tool.NewRegistry(tool.Options{Tools: now.tools, Now: time.Now, Run: c.Run, Agent: c.Agent})
	if err != nil {
		return nil, unusable(c, err)
	}
	p, err := replay.New(c, cancel, replay.Options{Check: toolbox.Check, Roughly: c.Facts.PromptBytes == 0 || c.Interrupted()})
	if err != nil {
		return nil, err
	}
	end, err := now.relive(live, p, c.Facts, drift)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // the replay was stopped, not the run
		return nil, reason.New(reason.Cancelled, "the replay was stopped: %w", context.Cause(ctx))
	}
	f := endOf(end, p.Run())
	if cost := p.Run().Cost; !p.Run().Unpriced && !p.Run().Uncounted && recordedPrices(c.Facts)[now.Model.Name].Input != "" {
		f.Cost = &cost
	}
	v, d := p.End(f)
	out := &Replayed{
		Outcome: &Outcome{Run: v, Journal: o.File}, Divergence: d, Notes: notes, Version: c.Version, Recorded: c.Recorded,
	}
	if o.Events != nil {
		for i, e := range p.Told() {
			if ctx.Err() != nil {
				out.Unseen = int64(len(p.Told()) - i)
				break
			}
			o.Events(e)
		}
	}
	return out, nil
}

// relived is the plan of a run that is lived again.
type relived struct {
	*session
	record *record
	// specs are the recorded tools by name.
	specs map[string]cassette.Tool
}

// recordedPlan makes the plan of a recording, with the tools as the model was
// told of them.
func recordedPlan(c *cassette.Cassette) (*relived, error) {
	damaged := func(err error) error { return unusable(c, err) }
	r := &record{}
	if err := json.Unmarshal(c.Plan, r); err != nil {
		return nil, damaged(err)
	}
	if r.Plan == nil || r.Agent == nil || r.Model == nil {
		return nil, damaged(errors.New("it names no agent and no model"))
	}
	started, _ := c.Events[0].Data.(event.RunStarted) // reading has seen to it
	p := &plan{Plan: r.Plan, prompt: started.Prompt, system: r.System}
	if len(started.Inputs) > 0 {
		if err := json.Unmarshal(started.Inputs, &p.inputs); err != nil {
			return nil, damaged(err)
		}
	}
	v := &relived{session: &session{plan: p, opts: RunOptions{FailOnDenied: r.FailOnDenied}}, record: r, specs: map[string]cassette.Tool{}}
	for _, t := range c.Tools {
		v.specs[t.Name] = t
	}
	for _, t := range r.Tools {
		if t.Tool == nil {
			return nil, damaged(errors.New("a tool of it is missing"))
		}
		d, err := sources.All().Define(t.Tool)
		if err != nil {
			return nil, damaged(err)
		}
		if spec, ok := v.specs[d.Name]; ok {
			d.Description, d.Parameters = spec.Description, spec.Parameters
		}
		p.tools = append(p.tools, d)
	}
	return v, nil
}

// unusable is a plan that no run was made of.
func unusable(c *cassette.Cassette, err error) error {
	return &cassette.DamageError{File: c.Name, Line: 2, Problem: "the plan cannot be used: " + err.Error(), Hint: "record the run anew with agentctl run --record"}
}

// offered is what the model is told before the conversation.
func (v *relived) offered() message.Prompt {
	p := message.Prompt{System: v.system, Output: v.outputSchema()}
	for i := range v.tools {
		if !v.specs[v.tools[i].Name].Hidden {
			p.Tools = append(p.Tools, v.tools[i].For())
		}
	}
	return p
}

// relive lets the real loop live the run, unless what it begins with differs
// already.
func (v *relived) relive(ctx context.Context, p *replay.Player, facts cassette.Facts, drift []replay.Drift) (loop.End, error) {
	if len(drift) > 0 {
		p.Drifted(drift[0])
		return loop.End{}, nil
	}
	begun, err := p.View()
	if err != nil {
		return loop.End{}, err
	}
	cfg := loop.Config{
		Model: p.Model(), Gate: p.Gate(), Approver: p.Approver(), Toolbox: p.Toolbox(), Journal: p.Journal(),
		Inbox: p.Inbox(), Files: p.Files(), View: begun, Now: p.Now, NewID: p.NewID, Limits: v.limits(), Guard: v.guard(), Context: v.context(v.offered()),
	}
	cfg.Limits.Price, cfg.Limits.ReserveOutput = v.priceAt(recordedPrices(facts)), facts.ReserveOutput
	// Whether calls overlap is told by the recording: no call waits for a place.
	cfg.Limits.MaxParallel = max(1, p.Calls())
	if cfg.Context.Window = facts.Window; facts.PromptBytes > 0 {
		cfg.Context.PromptBytes = facts.PromptBytes
	}
	if m := v.Summarizer; m != nil {
		cfg.Context.Summarizer, cfg.Context.SummarizerRef, cfg.Context.SummarizerWindow = p.Model(), refOf(m), facts.SummarizerWindow
	}
	if cfg.Answer, err = v.answer(); err != nil {
		return loop.End{}, err
	}
	end, err := loop.Run(ctx, cfg)
	if err != nil && p.Diverged() == nil {
		return end, fmt.Errorf("replay %s: %w", p.Run().ID, err)
	}
	return end, nil
}

// endOf is the event that ends a run.
func endOf(end loop.End, v *view.Run) event.RunFinished {
	return event.RunFinished{
		Phase: phase(end), Reason: string(end.Reason), ExitCode: end.Reason.ExitCode(), Message: end.Message, Hint: end.Hint,
		Output: end.Output, Steps: v.Steps, Tokens: v.Tokens, DurationMs: v.Worked(v.LastTime).Milliseconds(),
	}
}
