package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// fakeAsker has the questions of a test, and keeps the answers.
type fakeAsker struct {
	asked []runs.Asked
	left  []runs.Left
	reads int
}

func (f *fakeAsker) Questions(context.Context, string) ([]runs.Asked, error) {
	f.reads++
	return f.asked, nil
}

func (f *fakeAsker) Answer(_ Work, _ *runs.Asked, a runs.Left) error {
	f.left = append(f.left, a)
	return nil
}

// asksBench is a bench with a run that waits for an answer to one question.
type asksBench struct {
	*bench
	r     *approvalReconciler
	asker *fakeAsker
}

func newAsks(t *testing.T) *asksBench {
	t.Helper()
	b := newBench(t, workerYAML+sep+runYAML("one", "")).settled()
	b.phase(v1alpha1.PhaseRunning)
	id := RunID(b.run("one"))
	asked := questionFor("a")
	asked.Run = id
	f := &fakeAsker{asked: []runs.Asked{asked}}
	b.executor.seen[id] = Observation{Progress: Living, Status: v1alpha1.RunStatus{Phase: v1alpha1.PhaseRunning, PendingApprovals: 1}}
	return &asksBench{b, &approvalReconciler{base: b.base, executor: b.executor, asker: f}, f}
}

func (b *bench) phase(p v1alpha1.Phase) {
	b.t.Helper()
	run := b.run("one")
	run.Status.Phase = p
	if err := b.Status().Update(b.t.Context(), run); err != nil {
		b.t.Fatal(err)
	}
}

// questionFor is an open question whose id is made of a letter.
func questionFor(letter string) runs.Asked {
	return runs.Asked{
		WaitingCall: runs.WaitingCall{
			Run: "one", Call: "call_1_1", Tool: "bash", Args: json.RawMessage(`{"command":"date"}`), Facts: json.RawMessage(`{"commands":["date"]}`),
			Risk: "R2", Rule: "p/ask", Hash: "sha256:0", Always: []message.Grant{{Permission: "bash", Pattern: "date *"}},
		},
		ID: strings.Repeat(letter, 64), Binding: "sha256:" + strings.Repeat(letter, 64), Open: true,
	}
}

func (b *asksBench) look() ctrl.Result {
	b.t.Helper()
	again, err := b.r.Reconcile(b.t.Context(), request("one"))
	if err != nil {
		b.t.Fatal(err)
	}
	return again
}

func (b *asksBench) all() []v1alpha1.Approval {
	b.t.Helper()
	var list v1alpha1.ApprovalList
	if err := b.List(b.t.Context(), &list, client.InNamespace("ns")); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// only is the one Approval, which has a UID as a server gives it.
func (b *asksBench) only() *v1alpha1.Approval {
	b.t.Helper()
	all := b.all()
	if len(all) != 1 {
		b.t.Fatalf("there are %d approvals, want 1: %+v", len(all), all)
	}
	if a := &all[0]; a.UID == "" {
		a.UID = types.UID("uid-" + a.Name)
		if err := b.Update(b.t.Context(), a); err != nil {
			b.t.Fatal(err)
		}
	}
	return &all[0]
}

func (b *asksBench) decide(d v1alpha1.ApprovalDecision) *v1alpha1.Approval {
	b.t.Helper()
	a := b.only()
	at := metav1.NewTime(b.clock)
	a.Status = v1alpha1.ApprovalStatus{Decision: d, By: "jane", DecidedAt: &at}
	if err := b.Status().Update(b.t.Context(), a); err != nil {
		b.t.Fatal(err)
	}
	return a
}

func TestACallThatWaitsIsAnObject(t *testing.T) {
	b := newAsks(t)
	expires := b.clock.Add(time.Minute)
	b.asker.asked[0].ExpiresAt = &expires
	b.look()
	b.look()
	a := b.only()
	if a.Name != "one-aaaaaaaaaaaa" || a.Labels[RunLabel] != "one" || len(a.OwnerReferences) != 1 || a.OwnerReferences[0].UID != "uid-one" {
		t.Errorf("got %+v", a.ObjectMeta)
	}
	s := a.Spec
	if s.RunRef.Name != "one" || s.Call != "call_1_1" || s.Tool != "bash" || string(s.Args.Raw) != `{"command":"date"}` || string(s.Facts.Raw) != `{"commands":["date"]}` ||
		s.Risk != "R2" || s.Rule != "p/ask" || s.CallHash != "sha256:0" || !s.ExpiresAt.Time.Equal(expires) || s.Summary != `bash {"command":"date"}` || s.Always == nil || s.Agent != "worker" {
		t.Errorf("got %+v", s)
	}
	if a.Status.Decision != "" || len(b.asker.left) > 0 || len(b.told) != 1 || !strings.Contains(b.told[0], "approval one-aaaaaaaaaaaa") {
		t.Errorf("got %+v, left %v, told %v", a.Status, b.asker.left, b.told)
	}
}

// A call that is larger than an object is not shown at all, so that nobody approves a part
// of it; the same applies to a value that a server would change.
func TestACallIsShownWholeOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		shown bool
	}{
		"ordinary":       {`{"a":[1,-2,0.1,1e10,"\u202e",null,true,9223372036854775807]}`, true},
		"no arguments":   {``, true},
		"a large text":   {`{"a":"` + strings.Repeat("x", maxShown) + `"}`, false},
		"a large number": {`{"a":9223372036854775808000001}`, false},
		"many digits":    {`{"a":0.10000000000000000000000000001}`, false},
		"beyond floats":  {`{"a":[{"b":1e999}]}`, false},
		"beyond time":    {`{"a":1e-999999999}`, false},
		"no JSON":        {`{"a":`, false},
	} {
		q := questionFor("a")
		q.Args = json.RawMessage(c.args)
		b := newAsks(t)
		a, err := newApproval(b.run("one"), &q, b.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		if shown := a.Spec.Args != nil; shown != c.shown || !shown && (a.Spec.Facts != nil || !strings.Contains(a.Spec.Summary, "larger")) {
			t.Errorf("%s: got %+v", name, a.Spec)
		}
	}
}

func TestADecisionIsHandedOverUntilItIsTaken(t *testing.T) {
	b := newAsks(t)
	b.look()
	a := b.decide(v1alpha1.DecisionApproved)
	again := b.look()
	b.look() // as after a crash
	if len(b.asker.left) != 2 || b.asker.left[0] != b.asker.left[1] {
		t.Fatalf("left %+v", b.asker.left)
	}
	if l := b.asker.left[0]; l.Request != "apv-"+string(a.UID) || l.State != message.Approved || l.By != "jane" || !l.Time.Equal(b.clock) {
		t.Errorf("left %+v", l)
	}
	if again.RequeueAfter != runs.AnswerLife {
		t.Errorf("looked at again after %s", again.RequeueAfter)
	}
	q := &b.asker.asked[0]
	q.Open, q.Used, q.Answer = false, true, &view.Answer{Answer: message.Answer{State: message.Approved, By: "jane", Request: "apv-" + string(a.UID)}, Time: b.clock.Add(time.Second)}
	b.look()
	if s := b.only().Status; s.TakenAt == nil || s.Message != "" || len(b.asker.left) != 2 {
		t.Errorf("got %+v", s)
	}
	reads := b.asker.reads
	b.phase(v1alpha1.PhaseSucceeded)
	b.look()
	if b.asker.reads != reads {
		t.Error("the journal is read although nothing can have changed")
	}
}

func TestTheJournalSaysWhatBecameOfAQuestion(t *testing.T) {
	answered := func(s message.ApprovalState, by, request string, scope message.Scope) *view.Answer {
		return &view.Answer{Answer: message.Answer{State: s, By: by, Request: request, Scope: scope, Reason: "because"}, Time: time.Unix(1_800_000_000, 0)}
	}
	for name, c := range map[string]struct {
		reason   string
		decision v1alpha1.ApprovalDecision
		answer   *view.Answer
		why      string
		want     v1alpha1.ApprovalDecision
		by       string
		scope    v1alpha1.ApprovalScope
		taken    bool
		message  string
	}{
		"approved elsewhere":   {"a person at the machine was quicker", "", answered(message.Approved, "joe@pts/1", "ans_1", ""), "", "approved", "joe@pts/1", "Once", true, ""},
		"approved for always":  {"the scope is told", "", answered(message.Approved, "joe@pts/1", "ans_1", message.Always), "", "approved", "joe@pts/1", "Always", true, ""},
		"denied after all":     {"a policy was changed while the call waited", "", answered(message.Approved, "joe@pts/1", "ans_1", ""), "the call was not run", "approved", "joe@pts/1", "Once", true, "the call was not run"},
		"rejected elsewhere":   {"the same", "", answered(message.Rejected, "joe@pts/1", "ans_1", ""), "", "rejected", "joe@pts/1", "", true, ""},
		"expired":              {"nobody has decided that", "", answered(message.Expired, "--approve never, onAsk: Wait", "", ""), "", "expired", "", "", true, ""},
		"ended":                {"there was no answer", "", nil, "the run ended", "unanswered", "", "", false, ""},
		"overtaken":            {"what was decided stays, and was not what counted", "approved", answered(message.Rejected, "joe@pts/1", "ans_1", ""), "", "approved", "jane", "", false, "the run had another answer: rejected by joe@pts/1"},
		"decided and then end": {"the run did not live to take it", "rejected", nil, "the run ended", "rejected", "jane", "", false, "the run ended"},
	} {
		b := newAsks(t)
		b.look()
		if c.decision != "" {
			b.decide(c.decision)
		}
		q := &b.asker.asked[0]
		q.Open, q.Answer, q.Why, q.Used = false, c.answer, c.why, true
		b.look()
		s := b.only().Status
		if s.Decision != c.want || s.By != c.by || s.Scope != c.scope || (s.TakenAt != nil) != c.taken || s.Message != c.message || s.DecidedAt == nil {
			t.Errorf("%s: %s: got %+v", name, c.reason, s)
		}
	}
}

func TestAQuestionThatIsAskedAnewGetsAnotherObject(t *testing.T) {
	b := newAsks(t)
	soon, later := b.clock.Add(time.Minute), b.clock.Add(time.Hour)
	b.asker.asked[0].ExpiresAt = &soon
	b.look()
	b.asker.asked[0].ExpiresAt = &later // by the next process of the run
	b.look()
	b.look()
	if second := b.only(); !second.Spec.ExpiresAt.Time.Equal(later) {
		t.Errorf("got %+v", second)
	}
	// One that is decided is not taken back by that.
	b.decide(v1alpha1.DecisionApproved)
	b.asker.asked[0].ExpiresAt = &soon
	b.look()
	if a := b.only(); a.Status.Decision != v1alpha1.DecisionApproved || len(b.asker.left) != 1 {
		t.Errorf("got %+v, left %v", a.Status, b.asker.left)
	}
	// What would be done has changed: the old question is void, the new one open.
	b.asker.asked[0].Open, b.asker.asked[0].Why = false, "it has changed"
	b.asker.asked = append(b.asker.asked, questionFor("b"))
	b.look()
	all := b.all()
	if len(all) != 2 || all[0].Status.Message != "it has changed" || all[1].Status.Decision != "" || len(b.asker.left) != 1 {
		t.Errorf("got %+v", all)
	}
}

func TestADecisionIsNotGoodForEver(t *testing.T) {
	b := newAsks(t)
	b.look()
	b.decide(v1alpha1.DecisionApproved)
	b.clock = b.clock.Add(runs.AnswerLife)
	b.look()
	if len(b.asker.left) > 0 || len(b.all()) != 0 {
		t.Fatalf("left %v, %d objects", b.asker.left, len(b.all()))
	}
	b.look()
	if a := b.only(); a.Status.Decision != "" {
		t.Errorf("it is not asked again: %+v", a.Status)
	}
}

func TestApprovalsGoWithTheirRun(t *testing.T) {
	b := newAsks(t)
	b.look()
	run := b.run("one")
	if err := b.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	again := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "another"}, Spec: run.Spec}
	if err := b.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	b.decide(v1alpha1.DecisionApproved)
	b.look()
	if len(b.all()) != 0 || len(b.asker.left) != 0 {
		t.Errorf("a run of the same name has %d approvals of another, left %v", len(b.all()), b.asker.left)
	}
	// An object whose run is unknown.
	b.asker.asked[0].ID = strings.Repeat("c", 64)
	stray, err := newApproval(run, &b.asker.asked[0], b.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	b.look()
	if len(b.all()) != 0 {
		t.Error("an approval is left behind")
	}
}

// askingYAML is an agent that asks about each call, and does on a question what
// is said; its calls write a file.
func askingYAML(approvals string) string {
	agent := strings.Replace(agentYAML, "policyRefs: [{name: open}]", "policyRefs: [{name: ask}]\n  approvals: {"+approvals+"}", 1)
	model := strings.Replace(modelYAML, "    - {say: two, calls: [{tool: echo, args: {text: b}}]}\n", "", 1)
	return agent + sep + model + sep + toolYAML + sep + head + "kind: Policy\nmetadata: {name: ask}\nspec: {default: ask}\n"
}

// awaitApproval waits for an Approval of a run that is as wanted.
func (s space) awaitApproval(run string, want func(*v1alpha1.Approval) bool) *v1alpha1.Approval {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, &v1alpha1.ApprovalList{}, client.InNamespace(s.name))
		if err != nil {
			s.t.Fatal(err)
		}
		for e := range w.ResultChan() {
			if a, ok := e.Object.(*v1alpha1.Approval); ok && e.Type != "DELETED" && a.Spec.RunRef.Name == run && want(a) {
				w.Stop()
				return a
			}
		}
		w.Stop()
	}
	s.t.Fatalf("run %s has no such approval", run)
	return nil
}

func undecided(a *v1alpha1.Approval) bool { return a.Status.Decision == "" }

// decideAs writes a decision as the server does.
func (s space) decideAs(a *v1alpha1.Approval, d v1alpha1.ApprovalDecision, reason string, endRun ...bool) {
	s.t.Helper()
	now := metav1.Now()
	a.Status = v1alpha1.ApprovalStatus{Decision: d, By: "jane", Reason: reason, EndRun: len(endRun) > 0 && endRun[0], DecidedAt: &now}
	if err := s.Status().Update(context.Background(), a); err != nil {
		s.t.Fatal(err)
	}
}

func TestARunGoesOnWhenItsApprovalIsDecided(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for name, c := range map[string]struct {
		onAsk    string
		decision v1alpha1.ApprovalDecision
		reason   string
		phase    v1alpha1.Phase
		output   string
	}{
		"wait-approved":    {"onAsk: Wait, timeout: 5m", v1alpha1.DecisionApproved, "", v1alpha1.PhaseSucceeded, "a"},
		"wait-rejected":    {"onAsk: Wait, timeout: 5m", v1alpha1.DecisionRejected, "", v1alpha1.PhaseFailed, "done: "},
		"wait-ended":       {"onAsk: Wait, timeout: 5m", v1alpha1.DecisionRejected, "no more of this", v1alpha1.PhaseFailed, ""},
		"wait-reasoned":    {"onAsk: Wait, timeout: 5m", v1alpha1.DecisionRejected, "not today", v1alpha1.PhaseFailed, "done: "},
		"suspend-approved": {"onAsk: Suspend", v1alpha1.DecisionApproved, "", v1alpha1.PhaseSucceeded, "a"},
		"suspend-rejected": {"onAsk: Suspend", v1alpha1.DecisionRejected, "not today", v1alpha1.PhaseFailed, "done: "},
	} {
		s := space{s.WithWatch, t, s.name + "-" + name[:4] + name[len(name)-4:]}
		s.apply(askingYAML(c.onAsk) + sep + runYAML(name, ""))
		a := s.awaitApproval(name, undecided)
		if string(a.Spec.Args.Raw) != `{"text":"a"}` || a.Spec.Rule != "ask/default" || (a.Spec.ExpiresAt != nil) != strings.Contains(c.onAsk, "Wait") {
			t.Errorf("%s: got %+v", name, a.Spec)
		}
		ends := strings.HasSuffix(name, "-ended")
		s.decideAs(a, c.decision, c.reason, ends)
		run := s.awaitPhase(name, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled)
		if run.Status.Phase != c.phase || !strings.Contains(run.Status.Output, c.output) {
			t.Errorf("%s: the run ended as %+v", name, run.Status)
		}
		a = s.awaitApproval(name, func(a *v1alpha1.Approval) bool { return a.Status.TakenAt != nil })
		if a.Status.Decision != c.decision || a.Status.By != "jane" || a.Status.Message != "" {
			t.Errorf("%s: got %+v", name, a.Status)
		}
		decided := s.answers(run)
		if len(decided) != 1 || decided[0].By != "jane" || decided[0].Reason != c.reason || decided[0].EndRun != ends || decided[0].Request != "apv-"+string(a.UID) {
			t.Errorf("%s: the journal has %+v", name, decided)
		}
	}
}

// answers are those in the journal of a run.
func (s space) answers(run *v1alpha1.Run) (all []message.Answer) {
	s.t.Helper()
	for e, err := range journal.Read(context.Background(), run.Status.Journal.Path, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if d, ok := e.Data.(event.ApprovalDecided); ok {
			all = append(all, d.Answer)
		}
	}
	return all
}

// What a call would do is looked at again right before it runs. Where that has
// become something else, what was approved is void, and the question another.
func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	dir := t.TempDir()
	for _, name := range []string{"harmless", "precious"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("as it was"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("harmless", link); err != nil {
		t.Fatal(err)
	}
	agent := strings.Replace(askingYAML("onAsk: Wait, timeout: 5m"), "[{name: echo}]", "[{name: write}]", 1)
	s.apply(strings.Replace(agent, "{tool: echo, args: {text: a}}", "{tool: write, args: {path: link, content: changed}}", 1) + sep +
		runYAML("links", ", workspace: {source: {path: "+dir+"}, strategy: InPlace}"))
	first := s.awaitApproval("links", undecided)
	if !strings.Contains(string(first.Spec.Facts.Raw), "harmless") {
		t.Fatalf("it is not shown where the link leads: %s", first.Spec.Facts.Raw)
	}
	if err := errors.Join(os.Remove(link), os.Symlink("precious", link)); err != nil {
		t.Fatal(err)
	}
	s.decideAs(first, v1alpha1.DecisionApproved, "")
	second := s.awaitApproval("links", undecided)
	if second.Name == first.Name || second.Spec.Call != first.Spec.Call || !strings.Contains(string(second.Spec.Facts.Raw), "precious") {
		t.Errorf("got %+v", second.Spec)
	}
	s.decideAs(second, v1alpha1.DecisionRejected, "not that one")
	s.awaitPhase("links", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	for _, name := range []string{"harmless", "precious"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "as it was" {
			t.Errorf("%s is %q now: %v", name, text, err)
		}
	}
}

func TestAnApprovalShowsWhatHappenedElsewhere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(askingYAML("onAsk: Wait, timeout: 5m") + sep + runYAML("local", "") + sep + runYAML("ended", "") + sep + runYAML("gone", ""))
	for _, name := range []string{"local", "ended", "gone"} {
		s.awaitApproval(name, undecided)
	}
	run := s.awaitPhase("local", v1alpha1.PhaseRunning)
	if _, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: RunID(run), State: shared.dir, Approve: true, By: "joe@pts/1"}); err != nil {
		t.Fatal(err)
	}
	decided := func(a *v1alpha1.Approval) bool { return a.Status.Decision != "" }
	if a := s.awaitApproval("local", decided); a.Status.Decision != v1alpha1.DecisionApproved || a.Status.By != "joe@pts/1" || a.Status.TakenAt == nil {
		t.Errorf("answered at the machine: %+v", a.Status)
	}
	s.apply(runYAML("ended", ", cancel: true"))
	if a := s.awaitApproval("ended", decided); a.Status.Decision != v1alpha1.DecisionUnanswered || a.Status.By != "" || a.Status.Reason == "" {
		t.Errorf("cancelled: %+v", a.Status)
	}
	s.delete(s.awaitPhase("gone", v1alpha1.PhaseRunning))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := s.Watch(ctx, &v1alpha1.ApprovalList{}, client.InNamespace(s.name))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var list v1alpha1.ApprovalList
	for left := true; left; {
		if err := s.List(ctx, &list, client.InNamespace(s.name), client.MatchingFields{"spec.runRef.name": "gone"}); err != nil {
			t.Fatal(err)
		}
		if left = len(list.Items) > 0; left {
			<-w.ResultChan()
		}
	}
}

// The question must become an Approval before it expires, also on a busy machine.
func TestAnApprovalThatNobodyDecidesExpires(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(askingYAML("onAsk: Wait, timeout: 12s") + sep + runYAML("brief", ""))
	a := s.awaitApproval("brief", func(a *v1alpha1.Approval) bool { return a.Status.Decision != "" })
	if a.Status.Decision != v1alpha1.DecisionExpired || a.Status.By != "" || a.Status.Reason != "nobody answered in time" {
		t.Errorf("got %+v", a.Status)
	}
	s.awaitPhase("brief", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
}

// A rule that is made while a call waits still applies to it, and the person who approved
// the call can read why it did not run.
func TestANewDenyWinsOverAnApproval(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for name, onAsk := range map[string]string{"waits": "onAsk: Wait, timeout: 5m", "suspended": "onAsk: Suspend"} {
		s := space{s.WithWatch, t, s.name + "-" + name}
		s.apply(askingYAML(onAsk) + sep + runYAML(name, ""))
		a := s.awaitApproval(name, undecided)
		s.apply(head + "kind: Policy\nmetadata: {name: ask}\nspec: {default: deny}\n")
		s.decideAs(a, v1alpha1.DecisionApproved, "")
		a = s.awaitApproval(name, settled)
		if !strings.Contains(a.Status.Message, "the call was not run: rule ask/default, by the policies as they are now") {
			t.Errorf("%s: the approval says %+v", name, a.Status)
		}
		run := s.awaitPhase(name, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled)
		for e, err := range journal.Read(context.Background(), run.Status.Journal.Path, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if _, began := e.Data.(event.ToolCall); began {
				t.Errorf("%s: the call has begun", name)
			}
		}
	}
}

// Policies of the plan still hold for a call that waited.
func TestAMilderPolicyDoesNotApprove(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply(askingYAML("onAsk: Wait, timeout: 5m") + sep + runYAML("one", ""))
	a := s.awaitApproval("one", undecided)
	s.apply(head + "kind: Policy\nmetadata: {name: ask}\nspec: {default: allow}\n")
	s.decideAs(a, v1alpha1.DecisionRejected, "")
	if a = s.awaitApproval("one", func(a *v1alpha1.Approval) bool { return a.Status.TakenAt != nil }); a.Status.Message != "" {
		t.Errorf("got %+v", a.Status)
	}
	if run := s.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled); len(s.answers(run)) != 1 {
		t.Errorf("got %+v", s.answers(run))
	}
}

// Runs that wait for people do not keep others from being executed.
func TestAWaitingRunDoesNotCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	many := 2 * atOnce()
	s.apply(askingYAML("onAsk: Wait, timeout: 5m"))
	s.awaitReady("Agent", "worker", "True", "Accepted")
	s.startMany(many)
	for i := range many {
		s.awaitApproval(fmt.Sprintf("run-%d", i), undecided)
	}
	var folders []string
	for i := range many {
		folders = append(folders, journal.Dir(shared.dir, RunID(s.awaitPhase(fmt.Sprintf("run-%d", i), v1alpha1.PhaseRunning))))
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C { // a run is left after its question has been shown
		held := 0
		for _, dir := range folders {
			if journal.Held(dir) {
				held++
			}
		}
		if held <= atOnce() {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("%d of %d runs that wait have a worker", held, many)
		}
	}
	s.apply(strings.ReplaceAll(strings.ReplaceAll(workerYAML, "name: worker", "name: other"), "name: open", "name: unasked") + sep + strings.Replace(runYAML("new", ""), "name: worker", "name: other", 1))
	s.awaitPhase("new", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed)
	a := s.awaitApproval("run-0", undecided)
	s.decideAs(a, v1alpha1.DecisionApproved, "")
	s.awaitPhase("run-0", v1alpha1.PhaseSucceeded)
	if err := s.DeleteAllOf(t.Context(), &v1alpha1.Run{}, client.InNamespace(s.name)); err != nil {
		t.Fatal(err)
	}
}

// The whole of a call arrives in the object, whatever it is made of.
func TestALargeCallIsShownByAServer(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	var many strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&many, `"k%d": %d, `, i, i)
	}
	for name, c := range map[string]struct {
		args  string
		shown bool
	}{
		"fields": {`{text: "` + strings.Repeat("x", 1000) + `", more: {` + many.String() + `"last": [1, null, {"deep": true}]}}`, true},
		"text":   {`{text: "` + strings.Repeat("x", 250_000) + `"}`, true},
		"larger": {`{text: "` + strings.Repeat("x", 300_000) + `"}`, false},
	} {
		s := space{s.WithWatch, t, s.name + "-" + name}
		text := strings.Replace(askingYAML("onAsk: Wait, timeout: 5m"), "properties: {text: {type: string}}", "properties: {text: {type: string}, more: {type: object}}", 1)
		s.apply(strings.Replace(text, "args: {text: a}", "args: "+c.args, 1) + sep + runYAML("large", ""))
		a := s.awaitApproval("large", undecided)
		if (a.Spec.Args != nil) != c.shown {
			t.Errorf("%s: shown %v, want %v: %s", name, a.Spec.Args != nil, c.shown, a.Spec.Summary)
			continue
		}
		asked, err := runs.Questions(t.Context(), shared.dir, RunID(s.awaitPhase("large", v1alpha1.PhaseRunning)))
		if err != nil || len(asked) != 1 {
			t.Fatal(asked, err)
		}
		var got, want any
		if c.shown && (json.Unmarshal(a.Spec.Args.Raw, &got) != nil || json.Unmarshal(asked[0].Args, &want) != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%s: the object shows another call than the one that waits", name)
		}
		if err := s.DeleteAllOf(t.Context(), &v1alpha1.Run{}, client.InNamespace(s.name)); err != nil {
			t.Fatal(err)
		}
	}
}
