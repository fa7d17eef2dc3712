package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/statedir"
)

// AnswerOptions say which call is answered and how. Ref is required.
type AnswerOptions struct {
	// Ref is RUN/CALL: the run as View takes it, the call by its id
	// or a unique beginning; or the run alone when one of its calls waits.
	Ref string
	// State is the folder that holds runs; see statedir.Find.
	State string
	// Approve is true to approve the call, false to deny it.
	Approve bool
	// Answer to the question that the call asks while it runs; nil for an approval.
	Answer *string
	// Always approves calls of this kind for the rest of the run.
	Always bool
	// Reason of a denial, which the model reads.
	Reason string
	// EndRun ends the run with a denial; without it the run continues.
	EndRun bool
	// By is the person who answers, for example "jane@pts/3".
	By string
	// Patience is how long a running run may take to read the answer; 0 is 5 seconds.
	Patience time.Duration
}

// Answered is an answer that a run has taken, or will take when it is resumed.
type Answered struct {
	Ref   string                `json:"ref"`
	Run   string                `json:"run"`
	Call  string                `json:"call"`
	Tool  string                `json:"tool"`
	State message.ApprovalState `json:"state"`
	Scope message.Scope         `json:"scope"`
	By    string                `json:"by"`
	// Reason that was given.
	Reason string `json:"reason"`
	// EndRun reports that the run ends with the denial.
	EndRun bool `json:"endRun"`
	// Answer that the tool is given; nil for an approval.
	Answer *string `json:"answer,omitempty"`
	// Taken is true if the answer is in the journal; otherwise it is in the run's inbox
	// until a resume takes it.
	Taken bool `json:"taken"`
	// Remember is what is allowed from now on, and Policy the same as a manifest.
	Remember []message.Grant `json:"remember"`
	Policy   string          `json:"policy,omitempty"`
}

const (
	takenPatience = 5 * time.Second
	takenLook     = 50 * time.Millisecond
)

// Answer answers a call of a run that another process executes, or will execute. It writes
// only a request; the run checks it and records the result in its journal.
//
//	the call                          Answer returns
//	waits, its run is executed        the result from the journal, Taken
//	waits, its run is suspended       the answer in the inbox, which replaces an
//	or was killed                     earlier one
//	is not there, several fit         a *reason.UsageError
//	was answered, has ended, or the   an error with the reason
//	run does not take the answer
func Answer(ctx context.Context, o AnswerOptions) (*Answered, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	found, w, err := findWaiting(ctx, state, o.Ref)
	if err != nil {
		return nil, err
	}
	if err := o.Suits(w); err != nil {
		return nil, err
	}
	if o.Always && len(w.Always) == 0 {
		return nil, reason.Usagef("%s cannot be approved for always: %s", w.Ref, w.Once).WithHint("approve it without --always")
	}
	r := approval.Request{
		ID: newID("ans", time.Now()), Run: w.Run, Call: w.Call, Binding: w.binding, State: message.Rejected,
		By: o.By, Reason: o.Reason, EndRun: o.EndRun, Answer: o.Answer, Time: time.Now().UnixMilli(),
	}
	if o.Approve {
		r.State, r.Scope = message.Approved, message.Once
		if o.Always {
			r.Scope = message.Always
		}
	}
	if err := r.Check(); err != nil {
		return nil, reason.Usagef("answer %s: %w", w.Ref, err)
	}
	inbox := approval.NewInbox(found.Dir, time.Now)
	leave := inbox.Put
	if w.State != Waits {
		leave = inbox.Replace // a denial replaces an approval that no run has read
	}
	if err := leave(r); err != nil {
		return nil, err
	}
	a := &Answered{
		Ref: w.Ref, Run: w.Run, Call: w.Call, Tool: w.Tool, State: r.State, Scope: r.Scope, By: r.By, Reason: r.Reason, EndRun: r.EndRun,
		Answer: r.Answer, Remember: []message.Grant{},
	}
	if o.Always {
		a.Remember, a.Policy = w.Always, approval.Policy(w.Always)
	}
	if w.State != Waits {
		return a, nil
	}
	if o.Patience <= 0 {
		o.Patience = takenPatience
	}
	a.Taken, err = taken(ctx, found, inbox, r, o.Patience)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Suits checks that an answer is of the kind that the call waits for. The number
// of an option becomes its text.
func (o *AnswerOptions) Suits(w *WaitingCall) error {
	switch {
	case w.Question == nil && o.Answer != nil:
		return reason.Usagef("%s waits for an approval and does not ask a question", w.Ref).WithHint("approve it without --answer")
	case w.Question == nil:
		return nil
	case o.EndRun:
		return reason.Usagef("%s is a question: refusing it cannot end the run", w.Ref).WithHint("deny it without --end-run, or cancel the run")
	case o.Always:
		return reason.Usagef("%s is a question: it cannot be approved for always", w.Ref).WithHint("answer it with --answer TEXT")
	case o.Approve && o.Answer == nil:
		return reason.Usagef("%s is a question and needs an answer", w.Ref).WithHint("give it with --answer TEXT; agentctl approve shows the question")
	case o.Approve:
		answer, err := approval.Choose(*w.Question, *o.Answer)
		if err != nil {
			return reason.Usagef("answer %s: %w", w.Ref, err).WithHint("agentctl approve shows the question and its options")
		}
		o.Answer = &answer
	}
	return nil
}

// findWaiting finds the one call that a reference names.
func findWaiting(ctx context.Context, state, ref string) (journal.Found, *WaitingCall, error) {
	run, call, _ := strings.Cut(strings.TrimPrefix(ref, "run/"), "/")
	found, err := journal.FindRun(state, run)
	if err != nil {
		return found, nil, (&reason.UsageError{Err: err}).WithHint("agentctl approve lists the calls that wait")
	}
	v := &view.Run{}
	if err := Fold(ctx, found, v); err != nil {
		return found, nil, err
	}
	all := waitingIn(found, v)
	fits := slices.DeleteFunc(slices.Clone(all), func(w WaitingCall) bool { return !strings.HasPrefix(w.Call, call) })
	if i := slices.IndexFunc(all, func(w WaitingCall) bool { return w.Call == call }); i >= 0 {
		fits = all[i : i+1]
	}
	switch {
	case len(fits) == 1:
		return found, &fits[0], nil
	case len(fits) > 1:
		return found, nil, reason.Usagef("%d calls of run %s wait: %s", len(fits), v.ID, refs(fits)).WithHint("name one of them")
	case call == "":
		return found, nil, reason.Usagef("no call of run %s waits for an approval", v.ID).WithHint("agentctl approve lists the calls that wait")
	}
	err = closed(v, call)
	if u, ok := errors.AsType[*reason.UsageError](err); ok && len(all) > 0 {
		u.Hint = "what waits is " + refs(all)
	}
	return found, nil, err
}

func refs(waiting []WaitingCall) string {
	names := make([]string, len(waiting))
	for i := range waiting {
		names[i] = waiting[i].Ref
	}
	return strings.Join(names, ", ")
}

// taken waits until the run has handled a request. It is false when the run has ended
// meanwhile, and a resume will find the request.
func taken(ctx context.Context, found journal.Found, inbox *approval.Inbox, r approval.Request, patience time.Duration) (bool, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(takenLook)
	defer tick.Stop()
	for n := 0; ; n++ {
		there := inbox.Has(r.Call, r.ID)
		// The whole journal is read seldom while the request is still there.
		if !there || n%10 == 9 {
			v := &view.Run{}
			if err := Fold(ctx, found, v); err != nil {
				return false, err
			}
			if done, err := became(v, r, there); done || err != nil {
				return done, errors.Join(err, inbox.Remove(r.Call, r.ID))
			}
			if there && !journal.Held(found.Dir) {
				return false, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, errors.Join(context.Cause(ctx), inbox.Remove(r.Call, r.ID))
		case <-late.C:
			return false, errors.Join(fmt.Errorf("run %s does not take the answer: its process hangs, or waits no longer", r.Run), inbox.Remove(r.Call, r.ID))
		case <-tick.C:
		}
	}
}

// became reports what a run has done with a request: taken, refused with a reason, or
// nothing so far.
func became(v *view.Run, r approval.Request, there bool) (taken bool, err error) {
	if v.Used(r.Call, r.ID) {
		return true, nil
	}
	for _, w := range v.Warnings {
		if strings.Contains(w, r.ID+".json") {
			return false, errors.New(w)
		}
	}
	if !slices.Contains(v.PendingApprovals, r.Call) && (there || v.Finished != nil) {
		return false, closed(v, r.Call)
	}
	return false, nil
}

// Choose returns the answer that a text stands for; see approval.Choose.
func Choose(q message.Inquiry, text string) (string, error) { return approval.Choose(q, text) }
