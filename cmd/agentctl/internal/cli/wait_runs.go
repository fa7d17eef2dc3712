package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

// waitEvery is how often the journal of a run without a process is read.
const waitEvery = 250 * time.Millisecond

// waitNamed waits for the runs that words name, each where it is.
func (o *waitOptions) waitNamed(ctx context.Context, words []string) error {
	goals, err := o.parse(v1alpha1.KindRun)
	if err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usagef("--timeout %s is not more than 0", o.timeout)
	}
	refs := make([]runRef, len(words))
	for i, word := range words {
		if refs[i], err = parseRun(word); err != nil {
			return err
		}
	}
	found := make([]*source, 0, len(refs))
	defer func() {
		for _, src := range found {
			src.close()
		}
	}()
	for _, r := range refs {
		src, err := o.find(ctx, r)
		if err != nil {
			return err
		}
		found = append(found, src)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for _, src := range found {
		if src.client != nil {
			err = o.await(ctx, src.client, src.run, goals)
		} else {
			err = o.awaitRun(ctx, src, goals)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find finds a run. An unknown name is that of an object, which may be created or
// deleted later.
func (o *waitOptions) find(ctx context.Context, r runRef) (*source, error) {
	src, err := o.locate(ctx, r)
	if err == nil || !absent(err) || r.approval || strings.HasPrefix(r.name, "@") {
		return src, err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &source{client: c, run: client.Ref{Kind: v1alpha1.KindRun, Namespace: o.namespace, Name: r.name}}, nil
}

// awaitRun waits for a run of the state folder.
func (o *waitOptions) awaitRun(ctx context.Context, src *source, goals []goal) error {
	for _, g := range goals {
		seen, err := waitLocal(ctx, src, g)
		switch {
		case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return &codeError{fmt.Errorf("run/%s: not %s after %s: it is %s", src.id, g.text, o.timeout, seen.describe()), reason.ExitWait}
		case err != nil:
			return fmt.Errorf("wait for %s of run/%s: %w", g.text, src.id, err)
		}
	}
	if err := display.Text(o.app.stdout(), "run/"+src.id+" condition met\n"); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

// standing is the state of a run of the state folder.
type standing struct{ phase, reason, message string }

func (s standing) describe() string { return s.phase + because(s.reason, s.message) }

func (s standing) final() bool { return v1alpha1.Phase(s.phase).Finished() }

// errMet ends the reading of a journal.
var errMet = errors.New("the goal is reached")

// waitLocal waits until a run of the state folder reaches a goal. One that has ended
// without reaching it is an error: it does not change any more.
func waitLocal(ctx context.Context, src *source, g goal) (last standing, err error) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	var run view.Run
	met := func(phase string) bool {
		last = standingOf(&run, phase)
		return g.met(runAsObject(src, &run, last))
	}
	read := func(follow bool, see func() error) (*runs.Told, error) {
		return runs.Events(ctx, runs.EventsOptions{Ref: src.ref, State: src.state, From: run.LastSeq + 1, Follow: follow}, func(e event.Event) error {
			if err := run.Apply(e); err != nil || passing(e) {
				return err
			}
			return see()
		})
	}
	for {
		// The state of the run now; earlier states do not count.
		now, err := read(false, func() error { return nil })
		switch {
		case err != nil && absent(err) && g.met(nil):
			return last, nil
		case err != nil:
			return last, err
		case met(now.Phase):
			return last, nil
		case last.final() && g.text != "delete":
			return last, fmt.Errorf("it is %s", last.describe())
		case now.Phase == view.Running && g.text != "delete":
			_, err := read(true, func() error {
				if met(run.Phase) {
					return errMet
				}
				return nil
			})
			if errors.Is(err, errMet) {
				return last, nil
			}
			if err != nil {
				return last, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// passing reports whether an event is one of the many that change nothing that can be
// waited for.
func passing(e event.Event) bool {
	switch e.Data.(type) {
	case event.TextDelta, event.ReasoningDelta, event.ToolInputDelta, event.ToolProgress:
		return true
	}
	return false
}

func standingOf(run *view.Run, phase string) standing {
	s := standing{phase: phase}
	if f := run.Finished; f != nil {
		s.reason, s.message = f.Reason, f.Message
	}
	return s
}

// runAsObject is a run of the state folder in the form of a Run object, as far as a
// goal can be about it.
func runAsObject(src *source, run *view.Run, s standing) client.Object {
	status := "Unknown"
	switch {
	case s.phase == view.Succeeded:
		status = "True"
	case s.final():
		status = "False"
	}
	fields := map[string]any{
		"phase": s.phase, "steps": int64(run.Steps), "attempt": int64(run.Attempt), "cost": run.Cost.String(),
		"pendingApprovals": int64(len(run.PendingApprovals)),
		"conditions":       []any{map[string]any{"type": v1alpha1.ConditionSucceeded, "status": status, "reason": s.reason, "message": s.message}},
	}
	if f := run.Finished; f != nil && f.Output != "" {
		fields["output"] = f.Output
	}
	return client.Object{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KindRun,
		"metadata": map[string]any{"name": src.id},
		"spec":     map[string]any{"agentRef": map[string]any{"name": run.Started.Agent}},
		"status":   fields,
	}
}
