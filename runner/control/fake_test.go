package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
)

// bench is reconcilers over a fake server, an executor of the test's own and a stopped
// clock.
type bench struct {
	base
	t        *testing.T
	executor *fakeExecutor
	clock    time.Time
	writes   int // of a status
	told     []string
}

func newBench(t *testing.T, manifests string) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, executor: &fakeExecutor{seen: map[string]Observation{}}, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var all []client.Object
	for _, u := range objects(t, "ns", manifests) {
		obj := newObject(u.GetKind())
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
			t.Fatal(err)
		}
		obj.SetGeneration(1)
		obj.SetUID(types.UID("uid-" + u.GetName()))
		all = append(all, obj)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).
		WithStatusSubresource(&v1alpha1.Agent{}, &v1alpha1.Model{}, &v1alpha1.Tool{}, &v1alpha1.Policy{}, &v1alpha1.Skill{}, &v1alpha1.Workspace{}, &v1alpha1.Run{}, &v1alpha1.Approval{}, &v1alpha1.Test{}).
		WithIndex(&v1alpha1.Approval{}, asksFor, runOf).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
			b.writes++
			return c.SubResource(sub).Apply(ctx, obj, o...)
		}}).Build()
	b.base = base{Client: c, live: c, now: func() time.Time { return b.clock }, shared: &runner.Shared{}, events: SinkFunc(func(_ context.Context, obj client.Object, why reason.Reason, message string) {
		b.told = append(b.told, docName(kindOf(obj), obj.GetName())+" "+string(why)+" "+message)
	})}
	return b
}

// settled marks every object but runs as ready.
func (b *bench) settled() *bench {
	b.t.Helper()
	for _, kind := range []string{v1alpha1.KindModel, v1alpha1.KindTool, v1alpha1.KindPolicy, v1alpha1.KindAgent} {
		for _, name := range []string{"worker", "script", "echo", "open"} {
			obj := newObject(kind)
			if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, obj); err == nil {
				if err := b.ready(b.t.Context(), obj, accepted, nil); err != nil {
					b.t.Fatal(err)
				}
			}
		}
	}
	b.writes, b.told = 0, nil
	return b
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func (b *bench) run(name string) *v1alpha1.Run {
	b.t.Helper()
	r := &v1alpha1.Run{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) step(r *runReconciler, name string) ctrl.Result {
	b.t.Helper()
	result, err := r.Reconcile(b.t.Context(), request(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// fakeExecutor does what a test sets.
type fakeExecutor struct {
	mu                  sync.Mutex
	seen                map[string]Observation
	started             []Work
	cancelled, released []string
	suspended           []string
	keeps               bool // a suspended run continues, as one that a worker has taken
}

func (e *fakeExecutor) Start(w Work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = append(e.started, w)
	e.seen[w.ID] = Observation{Progress: Queued}
}

// Suspend forgets a run that waits for a worker, as the workers do.
func (e *fakeExecutor) Suspend(id string) {
	e.suspended = append(e.suspended, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[id].Progress == Queued && !e.keeps {
		delete(e.seen, id)
	}
}

func (e *fakeExecutor) Cancel(id string) { e.cancelled = append(e.cancelled, id) }

func (e *fakeExecutor) Observe(id string) Observation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[id]
}

func (e *fakeExecutor) Release(id string) {
	e.released = append(e.released, id)
	delete(e.seen, id)
}

func (e *fakeExecutor) Follow(func(string, string)) {}

func living(steps int32) Observation {
	return Observation{Progress: Living, Status: v1alpha1.RunStatus{Phase: v1alpha1.PhaseRunning, Steps: steps}}
}

// label changes an object.
func (b *bench) label(ctx context.Context, obj client.Object) error {
	obj.SetLabels(map[string]string{"changed": "yes"})
	return b.Update(ctx, obj)
}
