package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

// takenTime is how long a run may take to notice a decision before the verb ends.
const takenTime = 5 * time.Second

// answerObject decides about a call that waits at a control plane.
func (o *approveOptions) answerObject(ctx context.Context, c *client.Client, ref string) error {
	a, err := o.find(ctx, c, ref)
	if err != nil {
		return err
	}
	w := waitingObject(a)
	d := client.Decision{Decision: v1alpha1.DecisionRejected, Reason: o.reason, EndRun: o.endRun, Answer: o.text}
	asked := runs.AnswerOptions{Approve: o.approve, Always: o.always, EndRun: o.endRun, Answer: o.text}
	if err := asked.Suits(w); err != nil {
		return err
	}
	d.Answer = asked.Answer
	if o.approve {
		d.Decision = v1alpha1.DecisionApproved
	}
	if o.always {
		if d.Scope = v1alpha1.ScopeAlways; len(w.Always) == 0 {
			return usagef("%s cannot be approved for always: %s", w.Ref, cmp.Or(w.Once, "it can only be approved once")).try("agentctl approve " + w.Ref)
		}
	}
	decided, err := c.Decide(ctx, client.Ref{Namespace: a.Namespace, Name: a.Name}, a.Spec.Binding, d)
	if err != nil {
		return err
	}
	return o.showDecided(ctx, c, w, decided)
}

// reach connects to the selected control plane. One that is not named is
// not started.
func (o *approveOptions) reach(ctx context.Context) (*client.Client, error) {
	if o.meant() {
		return o.connect(ctx)
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
}

// showDecided says what has become of a decision, once its run has it.
func (o *approveOptions) showDecided(ctx context.Context, c *client.Client, w *runs.WaitingCall, decided client.Object) error {
	status := func(x client.Object, name string) string { return x.Text("status", name) }
	answered := &runs.Answered{
		EndRun: o.endRun,
		Ref:    w.Ref, Run: w.Run, Call: w.Call, Tool: w.Tool, State: message.ApprovalState(status(decided, "decision")),
		Scope: message.Scope(status(decided, "scope")), By: status(decided, "by"), Reason: status(decided, "reason"), Remember: []message.Grant{},
	}
	if text := status(decided, "answer"); w.Question != nil && answered.State == message.Approved {
		answered.Answer = &text
	}
	if answered.Scope == message.Always {
		answered.Remember, answered.Policy = w.Always, w.Policy()
	}
	soon, cancel := context.WithTimeout(ctx, takenTime)
	defer cancel()
	last := decided
	err := c.Await(soon, decided.Ref(), func(x client.Object) bool {
		if x != nil {
			last = x
		}
		return x == nil || status(x, "takenAt") != "" || status(x, "message") != ""
	})
	if err != nil && soon.Err() == nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if why := status(last, "message"); why != "" {
		return fmt.Errorf("the decision on approval %q was not taken: %s", w.Ref, why)
	}
	answered.Taken = status(last, "takenAt") != ""
	return o.show(answered, display.DescribeApproval(w.Ref, o.context, o.namespace))
}

// find finds the one call that a reference names: the name of an Approval, or
// the name of a Run and a call, or a Run alone of which one call waits.
func (o *approveOptions) find(ctx context.Context, c *client.Client, ref string) (*v1alpha1.Approval, error) {
	bare, isRun := strings.CutPrefix(ref, "run/")
	if !isRun {
		bare = strings.TrimPrefix(strings.TrimPrefix(ref, "approvals/"), "approval/")
	}
	run, call, both := strings.Cut(bare, "/")
	if !isRun && !both {
		x, err := c.Get(ctx, client.Ref{Kind: v1alpha1.KindApproval, Namespace: o.namespace, Name: bare})
		if err == nil {
			return approvalOf(x)
		}
		if !client.Missing(err) {
			return nil, err
		}
	}
	fits, decided, err := o.ofRun(ctx, c, run, call)
	if err == nil && len(fits) == 0 && decided == nil {
		if err = o.awaitAsked(ctx, c, run); err == nil {
			fits, decided, err = o.ofRun(ctx, c, run, call)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		names := make([]string, len(fits))
		for i, a := range fits {
			names[i] = a.Name
		}
		return nil, usagef("%d calls of run %s wait; name one of them: %s", len(fits), run, strings.Join(names, ", "))
	case decided != nil && call != "":
		return nil, fmt.Errorf("call %s of run %s was %s already", decided.Spec.Call, run, decided.Status.Decision)
	}
	return nil, usagef("no call waits that is called %s; agentctl approve lists those that do", ref)
}

// ofRun returns the Approvals of a run that wait, of calls whose name begins with a text: one
// alone where that is its whole name. decided is one that waits no longer.
func (o *approveOptions) ofRun(ctx context.Context, c *client.Client, run, call string) (fits []*v1alpha1.Approval, decided *v1alpha1.Approval, err error) {
	all, err := o.approvals(ctx, c, "spec.runRef.name="+run)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range all {
		switch {
		case !strings.HasPrefix(a.Spec.Call, call):
		case a.Status.Decision != "":
			decided = a
		case a.Spec.Call == call:
			return []*v1alpha1.Approval{a}, nil, nil
		default:
			fits = append(fits, a)
		}
	}
	return fits, decided, nil
}

// awaitAsked waits until an Approval of a run is there, if the run says that it waits for one:
// after a restart, the Approval is replaced by one with a later deadline.
func (o *approveOptions) awaitAsked(ctx context.Context, c *client.Client, run string) error {
	x, err := c.Get(ctx, client.Ref{Kind: v1alpha1.KindRun, Namespace: o.namespace, Name: run})
	if client.Missing(err) || err == nil && x.Number("status", "pendingApprovals") == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, takenTime)
	defer cancel()
	options := client.WatchOptions{ListOptions: client.ListOptions{Kind: v1alpha1.KindApproval, Namespace: o.namespace, Fields: "spec.runRef.name=" + run}}
	err = c.Watch(soon, options, func(change client.Change) bool {
		return change.Type == client.Deleted || change.Object.Text("status", "decision") != ""
	})
	if soon.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// approvals lists those with some fields.
func (o *approveOptions) approvals(ctx context.Context, c *client.Client, fields string) ([]*v1alpha1.Approval, error) {
	objects, _, err := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindApproval, Namespace: o.namespace, Fields: fields})
	if err != nil {
		return nil, err
	}
	all := make([]*v1alpha1.Approval, len(objects))
	for i, x := range objects {
		if all[i], err = approvalOf(x); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func approvalOf(x client.Object) (*v1alpha1.Approval, error) {
	text, err := json.Marshal(x)
	a := &v1alpha1.Approval{}
	if err = errors.Join(err, json.Unmarshal(text, a)); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", x.Ref(), err)
	}
	return a, nil
}

// waitingObjects are the calls that wait at a control plane.
func (o *approveOptions) waitingObjects(ctx context.Context) ([]runs.WaitingCall, error) {
	c, err := o.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.Endpoint().Local && !o.named() {
		return nil, nil // its runs are those of the state folder
	}
	all, err := o.approvals(ctx, c, "")
	if err != nil {
		return nil, err
	}
	waiting := []runs.WaitingCall{}
	for _, a := range all {
		if a.Status.Decision == "" {
			waiting = append(waiting, *waitingObject(a))
		}
	}
	return waiting, nil
}

// waitingObject is an Approval as the calls are shown that wait here.
func waitingObject(a *v1alpha1.Approval) *runs.WaitingCall {
	s := &a.Spec
	w := &runs.WaitingCall{
		Ref: a.Name, Run: s.RunRef.Name, Agent: s.Agent, State: runs.Waits, Call: s.Call, Tool: s.Tool, Risk: string(s.Risk), Rule: s.Rule,
		Message: s.Message, Hash: s.CallHash, Unknown: s.Unknown, Always: []message.Grant{}, Once: s.Once, AskedAt: a.CreationTimestamp.Time,
	}
	if s.Question != "" {
		w.Question = &message.Inquiry{Text: s.Question, Options: s.Options, Multiple: s.Multiple}
	}
	if s.ExpiresAt != nil {
		w.ExpiresAt = &s.ExpiresAt.Time
	}
	if s.Facts != nil {
		w.Facts = s.Facts.Raw
	}
	if s.Always != nil {
		_ = json.Unmarshal(s.Always.Raw, &w.Always) // what cannot be read cannot be approved for always
	}
	if s.Args != nil {
		w.Args = s.Args.Raw
	} else {
		w.Message = strings.TrimSpace(w.Message + "\n" + s.Summary)
	}
	return w
}

// waitingNames completes the Approvals that wait, with what they are about.
func (a *app) waitingNames(cmd *cobra.Command) []string {
	o := &approveOptions{target: target{app: a}}
	o.context, _ = cmd.Flags().GetString("context")
	o.namespace, _ = cmd.Flags().GetString("namespace")
	config, err := o.config()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if err != nil {
		return nil
	}
	defer c.Close()
	all, err := o.approvals(ctx, c, "")
	if err != nil {
		return nil
	}
	var names []string
	for _, x := range all {
		if x.Status.Decision == "" && len(names) < maxCompletions {
			about := x.Spec.Rule
			if x.Spec.Question != "" {
				about = "question: " + display.Line(x.Spec.Question)
			}
			names = append(names, x.Name+"\t"+x.Spec.Tool+", "+about)
		}
	}
	return names
}
