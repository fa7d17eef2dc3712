// Package decisions judges calls without a run: one that is described, or those that a run has recorded, again.
package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// registries are what plans are made with: all that there are.
var registries = sync.OnceValue(func() plan.Registries {
	return plan.Registries{Providers: provider.All(), Sources: sources.All()}
})

// decision is one decision of a run, and what had happened before it.
type decision struct {
	// view is the run until then; the next decision continues it.
	view *view.Run
	call *message.ToolPart
	step int
	at   event.Event
	made message.Decision
	// files were recorded around it.
	files recorded
	// calls and denials were before it.
	calls   map[string]int
	denials int
}

// read yields the decisions of a run in order. A call was judged again if something had
// changed by the time it ran; its last decision counts.
func read(ctx context.Context, found journal.Found) iter.Seq2[*decision, error] {
	return func(yield func(*decision, error) bool) {
		last, err := scan(ctx, found)
		if err != nil {
			yield(nil, err)
			return
		}
		v, calls, denials := &view.Run{}, map[string]int{}, 0
		first := map[string]message.Action{}
		for e, err := range journal.Read(ctx, found.Dir, 0) {
			if err != nil {
				yield(nil, unread(found, err))
				return
			}
			_ = v.Apply(e) // an event that the rules forbid changes nothing
			made, ok := e.Data.(event.PolicyDecision)
			if !ok {
				continue
			}
			c := v.Call(e.Call)
			if c == nil {
				continue
			}
			before, counted := first[e.Call]
			if files, ok := last[e.Seq]; ok {
				d := &decision{view: v, call: c, step: v.Step(e.Call), at: e, made: made.Decision, files: *files, calls: maps.Clone(calls), denials: denials}
				if counted {
					d.calls[c.Tool]--
				}
				if before == message.Deny {
					d.denials--
				}
				if !yield(d, nil) {
					return
				}
			}
			if counted {
				continue
			}
			first[e.Call] = made.Action
			calls[c.Tool]++
			if made.Action == message.Deny {
				denials++
			}
		}
	}
}

// scan finds the last decision about each call, by its number, with the records of the
// files around it.
func scan(ctx context.Context, found journal.Found) (map[int64]*recorded, error) {
	seqs, last := map[string]int64{}, map[int64]*recorded{}
	var now timeline
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return nil, unread(found, err)
		}
		now.add(e)
		if e.Type() == event.TypePolicyDecision {
			delete(last, seqs[e.Call])
			seqs[e.Call], last[e.Seq] = e.Seq, now.here()
		}
	}
	now.end()
	return last, nil
}

func unread(found journal.Found, err error) error {
	return fmt.Errorf("read the journal of run %s: %w", found.ID, err)
}

// plan is that of the run when the decision was made.
func (d *decision) plan(found journal.Found) (*plan.Plan, error) {
	r, err := plan.ReadRecord(found.Dir, d.view)
	if err != nil {
		return nil, err
	}
	p, err := r.Restore(d.view, plan.Options{Registries: registries()})
	if err != nil {
		return nil, err
	}
	p.Definitions, err = p.Called()
	return p, err
}

// context is what the decision depended on.
func (d *decision) context(p *plan.Plan) policy.Context {
	c := p.PolicyContext(p.Definitions, v1alpha1.IsolationLevel(d.view.Started.Isolation))
	c.Run.Name, c.Run.User = d.view.ID, d.view.Started.User
	c.Run.Inputs, _ = p.InputValues() // they come from a journal, and so are JSON
	c.Workspace = policy.Workspace{Root: d.view.Started.Workspace.Dir, Source: d.view.Started.Workspace.Source}
	c.Now = func() time.Time { return d.at.Time }
	c.Calls, c.Denials = d.calls, d.denials
	spent := d.view
	c.Budget = func() policy.Budget { return p.Budget(plan.UsedBy(spent, d.at.Time)) }
	c.Approvals = func() policy.Approvals { return policy.Approvals{Granted: spent.Granted, Refused: spent.Refused} }
	return c
}

// args are the judged arguments: those after the schema.
func (d *decision) args(p *plan.Plan) json.RawMessage {
	raw := d.call.Input
	if len(raw) == 0 {
		raw = json.RawMessage(d.call.Raw)
	}
	at := slices.IndexFunc(p.Definitions, func(t tool.Definition) bool { return t.Name == d.call.Tool })
	if at < 0 || len(p.Definitions[at].Parameters) == 0 {
		return raw
	}
	if schema, err := tool.NewSchema(p.Definitions[at].Parameters); err == nil {
		if checked, err := schema.Check(string(raw)); err == nil {
			return checked
		}
	}
	return raw
}
