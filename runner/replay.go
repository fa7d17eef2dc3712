package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/evidence"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/replay"
	"agentctl.dev/agentctl/runner/tool"
)

// ReplayOptions name the recording that is replayed. File is required.
type ReplayOptions struct {
	// File is the cassette.
	File string
	// Paths are manifests whose agent, tools and limits take the place of the
	// recorded ones; none: everything is as recorded. Stdin is read for "-".
	Paths []string
	Stdin io.Reader
	// Manifests were read before, in place of Paths.
	Manifests *Manifests
	// Model, WithoutRun and Models are those of RunOptions.
	Model      string
	WithoutRun bool
	Models     map[string]string
	// Task is what the recorded run must have been asked; nil: whatever it was.
	Task *Task
	// Agent chooses among several agents in Paths; "" is the recorded one's name.
	Agent string
	// Events is called with every event once and in order, before Replay
	// returns.
	Events func(event.Event)
}

// Task is the prompt and the inputs of a run, as manifests give them.
type Task struct {
	Prompt string
	Inputs map[string]json.RawMessage
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
	// Notes are what the replay does not show.
	Notes []string
	// Version of agentctl that recorded, and when.
	Version, Recorded string
}

// Replay executes a recorded run again: the real loop with everything around it
// played from the cassette. It needs no key, network, program, workspace or
// state folder. The error is set when the replay could not be executed: a
// *reason.UsageError or an *InvalidError (exit code 2), or an error with reason
// ReplayDiverged that names the damaged line (exit code 7).
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

// replayCassette replays a cassette that has been read. Without options the
// recording is compared with itself, and no events are reported.
func replayCassette(ctx context.Context, c *cassette.Cassette, o *ReplayOptions) (*Replayed, error) {
	if o == nil {
		o = &ReplayOptions{File: c.Name}
	}
	was, err := recordedPlan(c)
	if err != nil {
		return nil, err
	}
	now, drift, notes := was, []replay.Drift(nil), []string(nil)
	if o.Paths != nil || o.Manifests != nil {
		if now, notes, err = was.present(ctx, o); err != nil {
			return nil, err
		}
		drift = was.drift(now)
		if o.Task != nil {
			other, err := was.otherTask(now, o.Task)
			if err != nil {
				return nil, err
			}
			drift = append(other, drift...)
		}
	}
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var p *replay.Player
	toolbox, err := tool.NewRegistry(tool.Options{
		Tools: now.Definitions, Now: time.Now, Run: c.Run, Agent: c.Agent, Copies: func(name string) *message.ChildRun { return p.Copy(name) },
	})
	if err != nil {
		return nil, unusable(c, err)
	}
	p, err = replay.New(c, cancel, replay.Options{Check: toolbox.Check, Roughly: c.Facts.PromptBytes == 0 || c.Interrupted()})
	if err != nil {
		return nil, err
	}
	end, err := now.replay(live, p, c.Facts, drift)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // the replay was stopped, not the run
		return nil, reason.New(reason.Cancelled, "the replay was stopped: %w", context.Cause(ctx))
	}
	declared, set := now.Evidence(now.Definitions)
	var found []event.Evidence
	if len(declared) > 0 && !end.Suspended {
		end, found = execution.Evidenced(live, end, p.Run(), p.Run().LastTime, func(ctx context.Context, v *view.Run) ([]event.Evidence, error) {
			return evidence.Judge(ctx, declared, set, v, nil, p.Recorded().Evidence)
		})
	}
	f := execution.Finished(end, p.Run(), p.Run().LastTime)
	f.Evidence = found
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

// recorded is the plan of a recorded run.
type recorded struct {
	*plan.Plan
	record *plan.Record
	// specs are the recorded tools by name.
	specs map[string]cassette.Tool
}

// recordedPlan makes the plan of a recording, with the descriptions of the
// tools that the model had.
func recordedPlan(c *cassette.Cassette) (*recorded, error) {
	damaged := func(err error) error { return unusable(c, err) }
	stored := &plan.Record{}
	if err := json.Unmarshal(c.Plan, stored); err != nil {
		return nil, damaged(err)
	}
	if stored.Plan == nil || stored.Agent == nil || stored.Model == nil {
		return nil, damaged(errors.New("it names no agent and no model"))
	}
	r := &recorded{record: stored, specs: map[string]cassette.Tool{}}
	for _, t := range c.Tools {
		r.specs[t.Name] = t
	}
	for _, t := range stored.Tools {
		if t.Tool == nil {
			return nil, damaged(errors.New("a tool of it is missing"))
		}
	}
	stored.Functions = map[string][]tool.Function{}
	for _, t := range c.Tools {
		if t.Of != "" {
			stored.Functions[t.Of] = append(stored.Functions[t.Of], tool.Function{Name: t.Function, Description: t.Description, Parameters: t.Parameters})
		}
	}
	var err error
	if r.Plan, err = stored.Recorded(c.Begun(), registries()); err == nil {
		r.Definitions, err = r.Called()
	}
	if err != nil {
		return nil, damaged(err)
	}
	for i := range r.Definitions {
		d := &r.Definitions[i]
		if spec, ok := r.specs[d.Name]; ok {
			d.Description, d.Parameters = spec.Description, spec.Parameters
		}
	}
	return r, nil
}

// unusable is a plan that no run was made of.
func unusable(c *cassette.Cassette, err error) error {
	return &cassette.DamageError{File: c.Name, Line: 2, Problem: "the plan cannot be used: " + err.Error(), Hint: "record the run anew with agentctl run --record"}
}

// offered is what the model is sent before the conversation.
func (r *recorded) offered() message.Prompt {
	p := message.Prompt{System: r.System, Output: r.OutputSchema()}
	for i := range r.Definitions {
		if !r.specs[r.Definitions[i].Name].Hidden {
			p.Tools = append(p.Tools, r.Definitions[i].For())
		}
	}
	return p
}

// replay runs the loop with the recording, unless what it begins with differs already.
func (r *recorded) replay(ctx context.Context, p *replay.Player, facts cassette.Facts, drift []replay.Drift) (loop.End, error) {
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
		Inbox: p.Inbox(), Files: p.Files(), View: begun, Now: p.Now, NewID: p.NewID, Limits: r.LoopLimits(), Guard: r.LoopGuard(), Context: r.LoopContext(r.offered()),
	}
	cfg.Limits.Price, cfg.Limits.ReserveOutput = r.Models().PriceAt(recordedPrices(facts)), facts.ReserveOutput
	// The recording determines which calls overlap: no call waits for a place.
	cfg.Limits.MaxParallel = max(1, p.Calls())
	if cfg.Context.Window = facts.Window; facts.PromptBytes > 0 {
		cfg.Context.PromptBytes = facts.PromptBytes
	}
	if r.Summarizer != nil {
		cfg.Context.Summarizer, cfg.Context.SummarizerWindow = p.Model(), facts.SummarizerWindow
	}
	if cfg.Answer, err = r.LoopAnswer(r.record.FailOnDenied); err != nil {
		return loop.End{}, err
	}
	end, err := loop.Run(ctx, cfg)
	if err != nil && p.Diverged() == nil {
		return end, fmt.Errorf("replay %s: %w", p.Run().ID, err)
	}
	return end, nil
}

// present is the plan with the agent, the tools and the limits of today's
// manifests. The models stay the recorded ones, because their answers are
// recorded. The decisions stay, too, because the files that they depend on are
// not there.
func (r *recorded) present(ctx context.Context, o *ReplayOptions) (*recorded, []string, error) {
	read := o.Manifests
	if read == nil {
		var err error
		if read, err = plan.Admit(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: registries(), Images: artifact.OfSkills("", true)}); err != nil {
			return nil, nil, err
		}
	}
	catalog := read.Catalog
	choice := admission.ResolveOptions{Agent: o.Agent, Model: o.Model, WithoutRun: o.WithoutRun, Models: o.Models}
	if _, ok := catalog.Agents[r.Agent.Name]; ok && choice.Agent == "" {
		choice.Agent = r.Agent.Name
	}
	resolved, err := catalog.Resolve(choice)
	if err != nil {
		return nil, nil, &reason.UsageError{Err: err, Hint: reason.Hint(err)}
	}
	now := *r
	if now.Plan, err = r.Present(resolved); err != nil {
		return nil, nil, err
	}
	if now.Definitions, err = now.Called(); err != nil {
		return nil, nil, &reason.UsageError{Err: err}
	}
	for i := range now.Definitions {
		d := &now.Definitions[i]
		was, known := r.specs[d.Name]
		if known && plan.Undescribed(d, was.Description) {
			d.Description = was.Description
		}
		switch {
		case len(d.Parameters) > 0:
		case !known:
			return nil, nil, reason.Usagef("tool %q: only its plugin knows what it takes, and a replay starts none", d.Name).WithHint("write spec.parameters of the Tool")
		default:
			d.Parameters = was.Parameters
			if d.Description == "" {
				d.Description = was.Description
			}
		}
	}
	return &now, r.Redeclared(resolved), nil
}

// otherTask lists where a task is another one than that of the recorded run.
func (r *recorded) otherTask(now *recorded, t *Task) (all []replay.Drift, err error) {
	asked, inputs, err := now.Ask(t.Prompt, t.Inputs)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if asked != r.Prompt {
		all = append(all, replay.Drift{What: "the prompt differs", Recorded: r.Prompt, Now: asked})
	}
	was, err := json.Marshal(r.Inputs)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	if !sameJSON(was, is) {
		all = append(all, replay.Drift{What: "the inputs differ", Recorded: string(was), Now: string(is)})
	}
	return all, nil
}

// sameJSON compares two objects by their values; no object is as good as an empty one.
func sameJSON(a, b json.RawMessage) bool {
	var x, y map[string]any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && len(x) == len(y) && (len(x) == 0 || reflect.DeepEqual(x, y))
}

// drift lists what the model would be sent differently, and gives now the system prompt
// of the recorded run with its own instructions.
func (r *recorded) drift(now *recorded) (all []replay.Drift) {
	instructions, err := prompt.Fill(r.Agent.Spec.Instructions, r.Inputs)
	if err != nil {
		instructions = r.Agent.Spec.Instructions
	}
	was, is := strings.TrimSpace(instructions), strings.TrimSpace(now.Instructions)
	// They come first in the system prompt; the rest of it is the recorded one's.
	if rest, ok := strings.CutPrefix(r.System, was); ok && was != is {
		now.System = is + rest
	}
	for _, d := range plan.Diff(
		plan.Offer{Instructions: was, Tools: r.offered().Tools, Output: r.OutputSchema()},
		plan.Offer{Instructions: is, Tools: now.offered().Tools, Output: now.OutputSchema()},
	) {
		all = append(all, replay.Drift{What: d.What, Recorded: d.Was, Now: d.Is})
	}
	return all
}
