package control

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
)

const (
	// probeTime bounds how long a tool's program may take to say what it takes.
	probeTime = 30 * time.Second
	// probeAgain is when a program that did not answer is tried again.
	probeAgain = time.Minute
	// probesAtOnce bounds the programs that are started to be asked.
	probesAtOnce = 4
)

// toolReconciler says of tools whether they can be used: the program behind one
// is started once in the life of this process and asked, and tells what it told
// before.
type toolReconciler struct {
	base
	// probe tries a tool's program.
	probe func(context.Context, *v1alpha1.Tool) (*runner.ToolFacts, error)

	mu     sync.Mutex
	probed map[types.NamespacedName]probed
}

// probed is what was found out about one generation of a tool.
type probed struct {
	uid        types.UID
	generation int64
	digest     string
	verdict    verdict
}

func newToolReconciler(b base, o runner.ProbeOptions) *toolReconciler {
	return &toolReconciler{base: b, probed: map[types.NamespacedName]probed{}, probe: func(ctx context.Context, t *v1alpha1.Tool) (*runner.ToolFacts, error) {
		o := o
		o.Tool = t
		return runner.Probe(ctx, o)
	}}
}

func (r *toolReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("tool").
		For(&v1alpha1.Tool{}, builder.WithPredicates(own())).
		Watches(&v1alpha1.Agent{}, r.namers(func() client.ObjectList { return &v1alpha1.ToolList{} }), builder.WithPredicates(matters())).
		WithOptions(controller.Options{MaxConcurrentReconciles: probesAtOnce}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *toolReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &v1alpha1.Tool{}
	if err := r.Get(ctx, req.NamespacedName, t); err != nil || !t.DeletionTimestamp.IsZero() {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, done, err := r.judge(ctx, t)
	if err != nil || !done {
		return ctrl.Result{}, err
	}
	more := map[string]any{}
	if t.Status.Digest != "" {
		more["digest"] = t.Status.Digest
	}
	if v.why == reason.Accepted {
		warnings := v.message
		p := r.ask(ctx, t)
		if ctx.Err() != nil {
			return ctrl.Result{}, context.Cause(ctx)
		}
		if v = p.verdict; v.why == reason.Accepted {
			v.message, more["digest"] = warnings, p.digest
		}
	}
	var again ctrl.Result
	if v.why == reason.PluginFailed { // what it lacks may come: a file, a mount, memory
		again.RequeueAfter = probeAgain
	}
	return again, r.ready(ctx, t, v, more)
}

func (r *toolReconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.probed, name)
}

// ask tries the program of a tool, once for each generation of it.
func (r *toolReconciler) ask(ctx context.Context, t *v1alpha1.Tool) probed {
	r.mu.Lock()
	name := client.ObjectKeyFromObject(t)
	p, known := r.probed[name]
	r.mu.Unlock()
	if known && p.uid == t.UID && p.generation == t.Generation {
		return p
	}
	p = probed{uid: t.UID, generation: t.Generation, verdict: accepted}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	facts, err := r.probe(limited, t)
	switch {
	case err != nil:
		p.verdict = refused(whyUnusable(err), "%s", explained(err))
	case changed(t, facts.Digest):
		p.verdict = refused(reason.ToolChanged, "its program tells another description or schema than before: it was %s and is %s (change the spec, or delete the object and apply it again, to accept what it is now)", t.Status.Digest, facts.Digest)
	default:
		p.digest = facts.Digest
	}
	if err == nil {
		r.mu.Lock()
		r.probed[name] = p
		r.mu.Unlock()
	}
	return p
}

// changed says whether a tool tells something else than what this generation of
// it was found ready with.
func changed(t *v1alpha1.Tool, digest string) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.ObservedGeneration == t.Generation && t.Status.Digest != "" && t.Status.Digest != digest
}

// whyUnusable is the reason of an object for the reason of a run.
func whyUnusable(err error) reason.Reason {
	if r := reason.Of(err); r == reason.IsolationUnavailable {
		return r
	}
	return reason.PluginFailed
}

// explained is an error with its next step.
func explained(err error) string {
	if hint := reason.Hint(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
