package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/endpoint"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// mostChildren bounds the runs below one run that are executed at the same time: each
// holds programs, memory and descriptors.
const mostChildren = 64

// tree counts the runs below one run that are executed.
type tree struct {
	mu   sync.Mutex
	runs int
	// copies is how much disk the copies of the files take that were begun: the disk itself
	// shows it only when they are made.
	copies int64
}

// enter counts one more run; false: there are too many.
func (t *tree) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs >= mostChildren {
		return false
	}
	t.runs++
	return true
}

func (t *tree) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs--
}

// copy counts a copy of some files for the run in a folder, unless the disk has no room for
// it. A run that was begun before has its copy.
func (t *tree) copy(ctx context.Context, from, dir string) (done func(), err error) {
	if _, err := os.Stat(dir); err == nil {
		return func() {}, nil
	}
	used, err := fstree.Measure(ctx, from, workspace.MaxListed)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := tool.Fits(filepath.Dir(dir), t.copies+used.Bytes); err != nil {
		return nil, err
	}
	t.copies += used.Bytes
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.copies -= used.Bytes
	}, nil
}

// childID is the id of the run that a call starts.
func childID(agent, parent, call string) string {
	return execution.RunID(agent, func(kind string) string { return kind + "-" + journal.ChildSuffix(parent, call, agent) })
}

// startChild implements tool.Subagents.
func (r *run) startChild(ctx context.Context, call message.ToolCall, t tool.Task, progress func(string)) (*tool.ChildEnd, error) {
	refused := func(format string, args ...any) (*tool.ChildEnd, error) {
		return nil, &message.CallError{Code: message.CodeTool, Text: fmt.Sprintf(format, args...)}
	}
	declared, why := r.plan.Starter(t)
	if why != "" {
		return refused("%s", why)
	}
	if !r.tree.enter() {
		return refused("agent %q is not started: %d runs below this one are executed already; try again when some have ended", t.Agent, mostChildren)
	}
	defer r.tree.leave()
	child := &run{parent: r, call: call.ID, tree: r.tree, newID: r.newID, folder: &folder{id: childID(t.Agent, r.folder.id, call.ID)}}
	child.folder.dir = journal.Dir(r.opts.State, child.folder.id)
	switch declared.Workspace {
	case v1alpha1.NoWorkspace:
	case v1alpha1.CopiedWorkspace:
		if err := r.files.Prepared(ctx); err != nil {
			return nil, err
		}
		child.folder.from = environment.Root(r.opening.Workspace)
		made, err := r.tree.copy(ctx, child.folder.from, child.folder.dir)
		if err != nil && ctx.Err() == nil {
			return refused("agent %q is not started on a copy of the files: %v", t.Agent, err)
		} else if err != nil {
			return nil, context.Cause(ctx)
		}
		defer made()
	default:
		lent := r.opening.Workspace
		child.folder.lent = &lent
	}
	child.continues = strings.TrimPrefix(t.Resume, "run/")
	out, err := child.executeChild(ctx, plan.ChildOptions{Subagent: declared, Prompt: t.Prompt, Inputs: t.Inputs}, progress)
	switch {
	case ctx.Err() != nil && (err != nil || out.Run.Finished == nil):
		return nil, context.Cause(ctx)
	case err != nil:
		return refused("agent %q could not be started: %v", t.Agent, err)
	case out.Run.Finished == nil:
		return nil, errors.New("run " + child.folder.id + " was left before its end")
	}
	end := endOf(out.Run)
	if _, end.Head, err = journal.Head(out.Journal); err != nil {
		return nil, fmt.Errorf("run %s: %w", out.Run.ID, err)
	}
	if declared.Workspace == v1alpha1.CopiedWorkspace {
		end.Changes = execution.CopyChanges(out.Run)
	}
	return end, nil
}

// endOf is what a run has come to, for the call that has started it.
func endOf(v *view.Run) *tool.ChildEnd {
	f := v.Finished
	end := &tool.ChildEnd{
		ChildRun: message.ChildRun{
			Run: v.ID, Agent: v.Started.Agent, Phase: f.Phase, Reason: f.Reason, Steps: v.Steps,
			Tokens: v.Tokens, Cost: &v.Cost, Unpriced: v.Unpriced,
		},
		Failed: f.Phase != view.Succeeded, Output: f.Output, Message: f.Message,
	}
	if v.Uncounted {
		end.Estimated = &v.Estimated
	}
	return end
}

// changedBy returns what a child of the run has changed, from the child's own journal.
func (r *run) changedBy(ctx context.Context, name string) (*workspace.Change, workspace.Blobs, error) {
	id := strings.TrimPrefix(name, "run/")
	if run, call, ok := strings.Cut(id, "/"); ok {
		return r.codedBy(run, call)
	}
	dir := journal.Dir(r.opts.State, id)
	v := &view.Run{}
	if err := runs.Fold(ctx, journal.Found{ID: id, Dir: dir}, v); err != nil {
		return nil, nil, err
	}
	if p := v.Started.Parent; p == nil || p.Run != r.folder.id {
		return nil, nil, fmt.Errorf("run %s was not started by a call of this run", id)
	}
	blobs := journal.Stored(dir)
	change, err := workspace.ReadChange(blobs, v.Changes.Change)
	return change, blobs, err
}

// codedBy returns what a coding agent of others has changed in a call of this run.
func (r *run) codedBy(run, call string) (change *workspace.Change, blobs workspace.Blobs, err error) {
	var c *message.Coding
	r.exec.Recorder.See(func(v *view.Run) { c = v.Coding(call) })
	if run != r.folder.id || c == nil || c.Change == "" {
		return nil, nil, fmt.Errorf("call %s/%s has changed nothing in a copy", run, call)
	}
	change, err = workspace.ReadChange(r.exec.Recorder, c.Change)
	return change, r.exec.Recorder, err
}

// relay implements environment.Relays: what a program asks is reserved in the budget of the
// run, as what a run below it asks.
func (r *run) relay(call, _ string, program v1alpha1.CodingProgram, name string, api coder.API) (*environment.Relay, error) {
	m, err := r.plan.Relayed(program, name, string(api))
	if err != nil {
		return nil, err
	}
	w := &environment.Relay{Model: m}
	w.API, w.Model, w.Transport = api, m, r.transport
	w.Options.Model = m.Spec.Model
	w.BaseURL, w.Output, w.Window, w.Price = r.plan.Models().Relay(m)
	if w.Output == 0 {
		w.Output = assumedOutput
	}
	var mu sync.Mutex
	var used message.Coding
	budget := r.budget.Child(call, 0, 0, func(read func(*view.Run)) {
		mu.Lock()
		defer mu.Unlock()
		t := &view.Turn{Tokens: used.Tokens}
		if used.Estimated != nil {
			t.Estimated = *used.Estimated
		}
		if used.Cost != nil {
			t.Cost = *used.Cost
		}
		read(&view.Run{Turns: []*view.Turn{t}})
	})
	w.Reserve, w.Settle = budget.Reserve, budget.Settle
	w.Used = func(u endpoint.Use) {
		mu.Lock()
		defer mu.Unlock()
		if u.Estimated {
			sum := u.Tokens
			if used.Estimated != nil {
				sum = sum.Add(*used.Estimated)
			}
			used.Estimated = &sum
		} else {
			used.Tokens = used.Tokens.Add(u.Tokens)
		}
		if u.Cost == nil {
			used.Unpriced = true
			return
		}
		sum := *u.Cost
		if used.Cost != nil {
			sum = sum.Add(*used.Cost)
		}
		used.Cost = &sum
	}
	w.Use = func() message.Coding {
		mu.Lock()
		defer mu.Unlock()
		return used
	}
	return w, nil
}

// assumedOutput is the most tokens of an answer whose request and Model do not say it.
const assumedOutput = 8192

// executeChild begins the run, or continues it where an earlier process has begun it. Of a
// run that has ended it returns the end.
func (r *run) executeChild(ctx context.Context, o plan.ChildOptions, progress func(string)) (*Outcome, error) {
	opts := *r.parent.opts
	opts.ID, opts.Record, opts.Drain, opts.Timeout, opts.sent, opts.attached, opts.inputs = r.folder.id, "", nil, 0, nil, nil, nil
	opts.FailOnDenied, opts.Caller = false, nil
	report, children := reporting(r.folder.id, progress), opts.Children
	opts.Events = func(e event.Event) {
		report(e)
		if children != nil {
			children(e)
		}
	}
	if begun, err := r.begunBefore(ctx); begun || err != nil {
		if err != nil {
			return nil, err
		}
		return r.continueChild(ctx, &opts)
	}
	if r.continues != "" {
		earlier, err := r.earlier(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		o.Prompt = prompt.Earlier(o.Prompt, earlier.ID, earlier.History())
	}
	p, err := r.parent.plan.Child(o)
	if err != nil {
		return nil, err
	}
	r.opts, r.host = &opts, environment.NewHost(opts.host())
	if err := r.begin(ctx, p, nil); err != nil {
		return nil, errors.Join(err, r.host.Close(), r.folder.remove())
	}
	return r.execute(ctx)
}

// earlier is the run that this one continues: one of the same agent that an earlier call of
// the same run has started, and whose end is the result of that call.
func (r *run) earlier(ctx context.Context, agent string) (*view.Run, error) {
	var found *message.ChildRun
	r.parent.exec.Recorder.See(func(v *view.Run) {
		for _, child := range v.Children() {
			if child.Run == r.continues || r.continues == view.NewestChild && child.Agent == agent {
				found = child
			}
		}
	})
	switch {
	case found == nil:
		return nil, fmt.Errorf("resume: no earlier call of this run has the result of run/%s of agent %s", r.continues, agent)
	case found.Agent != agent:
		return nil, fmt.Errorf("resume: run/%s is of agent %s; only that one continues it", found.Run, found.Agent)
	}
	v := &view.Run{}
	if err := runs.Fold(ctx, journal.Found{ID: found.Run, Dir: journal.Dir(r.parent.opts.State, found.Run)}, v); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	r.continues = v.ID
	return v, nil
}

// begunBefore reports whether an earlier process has begun the run. What a process has
// left that was killed before the first event is removed.
func (r *run) begunBefore(ctx context.Context) (bool, error) {
	_, err := journal.Last(r.folder.dir)
	if damage, end := journal.DamagedAtEnd(err); err == nil || end && damage.Kept > 0 {
		return true, nil
	}
	if _, err := os.Stat(r.folder.dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if report, err := journal.Verify(ctx, r.folder.dir); err != nil || report.Events > 0 {
		return err == nil, err
	}
	if journal.Held(r.folder.dir) {
		return false, fmt.Errorf("run %s is being begun by another process", r.folder.id)
	}
	return false, fstree.Remove(r.folder.dir)
}

func (r *run) continueChild(ctx context.Context, opts *RunOptions) (*Outcome, error) {
	found, err := journal.FindRun(opts.State, r.folder.id)
	if err != nil {
		return nil, err
	}
	seen := &view.Run{}
	if err := runs.Fold(ctx, found, seen); err != nil {
		return nil, err
	}
	if p := seen.Started.Parent; p == nil || p.Run != r.parent.folder.id || p.Call != r.call {
		return nil, fmt.Errorf("run %s exists and was not started by this call", found.ID)
	}
	if over(seen) {
		seal(ctx, found, seen)
		return &Outcome{Run: seen, Journal: found.Dir}, nil
	}
	if err := r.reopen(ctx, found, seen, opts); err != nil {
		return nil, err
	}
	if err := r.resume(); err != nil {
		return nil, errors.Join(err, r.exec.Abandon(ctx, opts.Kill), r.host.Close())
	}
	return r.execute(ctx)
}

// reporting shows people, as the progress of the call, what a child does.
func reporting(id string, progress func(string)) func(event.Event) {
	step := 0
	return func(e event.Event) {
		switch d := e.Data.(type) {
		case event.RunStarted:
			progress("run/" + id + " has begun")
		case event.StepStart:
			step = d.Step
		case event.ToolCall:
			progress(fmt.Sprintf("run/%s step %d: %s %s", id, step, d.Tool, clipped(string(d.Args))))
		case event.ApprovalRequested:
			if d.ExpiresAt > 0 { // somebody is waited for
				progress(fmt.Sprintf("run/%s waits for an approval (rule %s): agentctl approve %s/%s", id, d.Rule, id, e.Call))
			}
		case event.QuestionAsked:
			progress(fmt.Sprintf("run/%s asks a question: agentctl approve %s/%s", id, id, e.Call))
		}
	}
}

// clipped is a text that fits on a line.
func clipped(s string) string {
	const most = 120
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// lineage is where the run is in its tree; nil at the top.
func (r *run) lineage() *event.Parent {
	if r.parent == nil {
		return nil
	}
	root := r.parent
	for root.parent != nil {
		root = root.parent
	}
	return &event.Parent{Run: r.parent.folder.id, Call: r.call, Root: root.folder.id, Agents: r.plan.Parents, Continues: r.continues}
}

// lentFiles are those of the parent, if the run works on them; nil: it has its own.
func (r *run) lentFiles() *environment.Files {
	if r.folder.lent == nil {
		return nil
	}
	return r.parent.files
}

// peopleAbove are those of the parent; nil at the top.
func (r *run) peopleAbove() *execution.People {
	if r.parent == nil {
		return nil
	}
	return r.parent.people
}

// asSubagent names the run to a person who is asked on the terminal of the run above;
// "" at the top.
func (r *run) asSubagent() string {
	if r.parent == nil {
		return ""
	}
	return "agent " + r.plan.Agent.Name + ", run/" + r.folder.id
}

// newBudget is what the run may use, out of what its parent may.
func (r *run) newBudget() *execution.Budget {
	tokens, cost, used := r.plan.Limits.MaxTokens, r.plan.MaxCost(), r.exec.Recorder.See
	if r.parent == nil {
		return execution.NewBudget(tokens, cost, used)
	}
	return r.parent.budget.Child(r.call, tokens, cost, used)
}
