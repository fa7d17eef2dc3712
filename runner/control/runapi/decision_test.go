package runapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"agentctl.dev/agentctl/api/v1alpha1"
)

var decidedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// question is a run that waits, and the Approval it waits for.
func question() (*v1alpha1.Run, *v1alpha1.Approval) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly", UID: "uid-1", Annotations: map[string]string{v1alpha1.AnnotationStartedBy: "joe"}}}
	run.Status.Phase = v1alpha1.PhaseRunning
	expires := metav1.NewTime(decidedAt.Add(time.Minute))
	return run, &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "nightly-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindRun, Name: "nightly", UID: "uid-1"}},
		},
		Spec: v1alpha1.ApprovalSpec{
			RunRef: v1alpha1.Reference{Name: "nightly"}, Call: "call_1", Tool: "bash", CallHash: "sha256:0",
			Args: &v1alpha1.JSON{Raw: []byte(`{}`)}, Always: &v1alpha1.JSON{Raw: []byte(`[{}]`)}, ExpiresAt: &expires,
		},
	}
}

// decider serves decisions over objects, as a caller of the test's choice.
type decider struct {
	*Server
	client client.Client
	caller Caller
}

func newDecider(t *testing.T, run *v1alpha1.Run, a *v1alpha1.Approval) *decider {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{a}
	if run != nil {
		objects = append(objects, run)
	}
	d := &decider{caller: Caller{Name: "jane"}}
	d.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Approval{}, &v1alpha1.Run{}).Build()
	d.Server = New(Options{
		Client: d.client, State: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Caller: func(context.Context) Caller { return d.caller }, Now: func() time.Time { return decidedAt },
	})
	return d
}

func (d *decider) post(body, kind string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/apis/agentctl.dev/v1alpha1/namespaces/ns/approvals/nightly-1/decision", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func (d *decider) status(t *testing.T) v1alpha1.ApprovalStatus {
	t.Helper()
	a := &v1alpha1.Approval{}
	if err := d.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "nightly-1"}, a); err != nil {
		t.Fatal(err)
	}
	return a.Status
}

func TestADecisionIsWrittenWithWhoAsked(t *testing.T) {
	for body, want := range map[string]v1alpha1.ApprovalStatus{
		`{"decision": "approved"}`:                                        {Decision: "approved", Scope: "Once"},
		`{"decision": "approved", "scope": "Once", "reason": "fine"}`:     {Decision: "approved", Scope: "Once", Reason: "fine"},
		`{"decision": "approved", "scope": "Always"}`:                     {Decision: "approved", Scope: "Always"},
		`{"decision": "rejected", "reason": "not\nnow", "scope": "Once"}`: {Decision: "rejected", Reason: "not\nnow"},
		`{"decision": "rejected", "endRun": true}`:                        {Decision: "rejected", EndRun: true},
	} {
		d := newDecider(t, first(question()), second(question()))
		if w := d.post(body, "application/json; charset=utf-8"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"kind":"Approval"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		got := d.status(t)
		if got.Decision != want.Decision || got.Scope != want.Scope || got.Reason != want.Reason || got.EndRun != want.EndRun || got.By != "jane" || !got.DecidedAt.Time.Equal(decidedAt) {
			t.Errorf("%s: got %+v", body, got)
		}
	}
}

// The identity that began a run may reject its calls, and approve them if that is
// permitted.
func TestWhoBeganARunRejects(t *testing.T) {
	for body, permitted := range map[string]bool{`{"decision": "rejected"}`: false, `{"decision": "approved"}`: true} {
		d := newDecider(t, first(question()), second(question()))
		d.caller.Name, d.o.SelfApproval = "joe", func() bool { return permitted }
		if w := d.post(body, "application/json"); w.Code != http.StatusOK || d.status(t).By != "joe" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// A Run that is named like an identity, or the name of an identity that ends like the
// uid of a Run, kept that identity from deciding.
func TestANameOfARunLocksNobodyOut(t *testing.T) {
	for _, name := range []string{"nightly", "nightly-uid-1", "uid-1"} {
		d := newDecider(t, first(question()), second(question()))
		var audited []string
		d.caller.Name, d.o.Audit = name, func(_ context.Context, about Audited, value string) {
			audited = append(audited, string(about)+"="+value)
		}
		if w := d.post(`{"decision": "approved", "scope": "Always"}`, "application/json"); w.Code != http.StatusOK || d.status(t).By != name {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if got := strings.Join(audited, " "); got != "run=nightly decision=approved Always" {
			t.Errorf("audited: %s", got)
		}
	}
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

// Whatever is refused changes nothing.
func TestADecisionIsRefused(t *testing.T) {
	const approve = `{"decision": "approved"}`
	type objects struct {
		run      *v1alpha1.Run
		approval *v1alpha1.Approval
		caller   *Caller
	}
	for name, c := range map[string]struct {
		body, kind string
		change     func(*objects)
		code       int
		says       string
	}{
		"no decision":           {body: `{}`, code: 422, says: "decision"},
		"no such decision":      {body: `{"decision": "expired"}`, code: 422, says: "supported values"},
		"in other letters":      {body: `{"decision": "Approved"}`, code: 422, says: "supported values"},
		"no such scope":         {body: `{"decision": "approved", "scope": "Forever"}`, code: 422, says: "scope"},
		"rejected for always":   {body: `{"decision": "rejected", "scope": "Always"}`, code: 422, says: "only an approval"},
		"approved, and ended":   {body: `{"decision": "approved", "endRun": true}`, code: 422, says: "only a rejection can end the run"},
		"always, but only once": {body: `{"decision": "approved", "scope": "Always"}`, change: func(o *objects) { o.approval.Spec.Always, o.approval.Spec.Once = nil, "it cannot be undone" }, code: 422, says: "it cannot be undone"},
		"not shown":             {body: approve, change: func(o *objects) { o.approval.Spec.Args = nil }, code: 422, says: "nobody approves what they cannot see"},
		"a long reason":         {body: `{"decision": "rejected", "reason": "` + strings.Repeat("x", maxReason+1) + `"}`, code: 422, says: "4096"},
		"who decides":           {body: `{"decision": "approved", "by": "root"}`, code: 400, says: "by"},
		"when":                  {body: `{"decision": "approved", "decidedAt": "2026-01-01T00:00:00Z"}`, code: 400, says: "decidedAt"},
		"twice":                 {body: `{"decision": "rejected", "decision": "approved"}`, code: 400, says: "duplicate"},
		"another case":          {body: `{"DECISION": "approved"}`, code: 400, says: "DECISION"},
		"no object":             {body: `"approved"`, code: 400, says: ""},
		"more behind it":        {body: approve + approve, code: 400, says: ""},
		"nothing":               {body: ``, code: 400, says: ""},
		"a form":                {body: "decision=approved", kind: "application/x-www-form-urlencoded", code: 415, says: "application/json"},
		"a text":                {body: approve, kind: "text/plain", code: 415, says: "application/json"},
		"no type":               {body: approve, kind: " ", code: 415, says: "application/json"},
		"two megabytes":         {body: `{"decision": "approved", "reason": "` + strings.Repeat("x", 2<<20) + `"}`, code: 413, says: "bytes"},
		"nobody":                {body: approve, change: func(o *objects) { o.caller.Name = "" }, code: 403, says: ""},
		"the run's own token":   {body: approve, change: func(o *objects) { o.caller.Runs = []string{"ns/other", "ns/nightly"} }, code: 403, says: "its own calls"},
		"by who began the run":  {body: approve, change: func(o *objects) { o.caller.Name = "joe" }, code: 403, says: "may not approve calls of a run that it began, and \\\"joe\\\" began run \\\"nightly\\\": ask another approver, or start agentd with --self-approval"},
		"of unknown beginning":  {body: approve, change: func(o *objects) { o.run.Annotations = nil }, code: 403, says: "not known who began"},
		"approved before":       {body: approve, change: func(o *objects) { o.approval.Status.Decision, o.approval.Status.By = "approved", "joe" }, code: 409, says: "approved already by joe"},
		"expired before":        {body: approve, change: func(o *objects) { o.approval.Status.Decision = "expired" }, code: 409, says: "expired already"},
		"too late":              {body: approve, change: func(o *objects) { o.approval.Spec.ExpiresAt.Time = decidedAt }, code: 409, says: "has expired"},
		"no run":                {body: approve, change: func(o *objects) { o.run = nil }, code: 409, says: "is gone"},
		"another run":           {body: approve, change: func(o *objects) { o.run.UID = "uid-2" }, code: 409, says: "is gone"},
		"nobody's":              {body: approve, change: func(o *objects) { o.approval.OwnerReferences = nil }, code: 409, says: "is gone"},
		"succeeded":             {body: approve, change: func(o *objects) { o.run.Status.Phase = v1alpha1.PhaseSucceeded }, code: 409, says: "Succeeded"},
		"cancelled":             {body: approve, change: func(o *objects) { o.run.Status.Phase = v1alpha1.PhaseCancelled }, code: 409, says: "Cancelled"},
		"being deleted": {body: approve, change: func(o *objects) {
			now := metav1.NewTime(decidedAt)
			o.run.DeletionTimestamp, o.run.Finalizers = &now, []string{"agentctl.dev/run"}
		}, code: 409, says: "being deleted"},
	} {
		run, a := question()
		o := objects{run, a, &Caller{Name: "jane"}}
		if c.change != nil {
			c.change(&o)
		}
		d := newDecider(t, o.run, o.approval)
		d.caller = *o.caller
		before := d.status(t)
		kind := c.kind
		if kind == "" {
			kind = "application/json"
		}
		w := d.post(c.body, kind)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || !strings.Contains(w.Body.String(), `"kind":"Status"`) {
			t.Errorf("%s: got %d %s, want %d with %q", name, w.Code, w.Body, c.code, c.says)
		}
		if after := d.status(t); after != before {
			t.Errorf("%s: it is %+v now", name, after)
		}
	}
}

// Of several concurrent decisions exactly one counts, and the others are refused.
func TestOneOfSeveralDecides(t *testing.T) {
	for round := range 50 {
		d := newDecider(t, first(question()), second(question()))
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				decision := v1alpha1.DecisionApproved
				if i%2 == 1 {
					decision = v1alpha1.DecisionRejected
				}
				_, errs[i] = d.decide(t.Context(), Caller{Name: fmt.Sprintf("approver-%d", i)}, client.ObjectKey{Namespace: "ns", Name: "nightly-1"}, &decisionRequest{Decision: decision})
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil && winner < 0 {
				winner = i
			} else if err == nil {
				t.Fatalf("round %d: %d and %d have decided", round, winner, i)
			}
		}
		got := d.status(t)
		if winner < 0 || got.By != fmt.Sprintf("approver-%d", winner) || (got.Decision == v1alpha1.DecisionApproved) != (winner%2 == 0) {
			t.Fatalf("round %d: %v, and it is %+v", round, errors.Join(errs...), got)
		}
	}
}
