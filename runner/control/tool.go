package control

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// AcceptDigest is the annotation by which a user accepts a changed description of a tool's
// program: its value is the new digest, as the condition names it.
const AcceptDigest = "agentctl.dev/accept-digest"

const (
	// probeTime bounds how long a tool's program may take to say what it takes.
	probeTime = 30 * time.Second
	// probesAtOnce bounds the programs that are started to be asked.
	probesAtOnce = 4
)

// toolReconciler checks whether tools can be used: the program of a tool is started once
// per process and asked for its description, which must not have changed.
type toolReconciler struct {
	base
	// probe tries a tool's program.
	probe func(context.Context, *v1alpha1.Tool) (*connect.ToolFacts, error)

	mu     sync.Mutex
	probed map[types.NamespacedName]probed
}

// probed is what was found out about one generation of a tool.
type probed struct {
	uid        types.UID
	generation int64
	// program identifies the files of the program.
	program   string
	digest    string
	readiness readiness
}

func newToolReconciler(b base, o connect.ProbeOptions) *toolReconciler {
	return &toolReconciler{base: b, probed: map[types.NamespacedName]probed{}, probe: func(ctx context.Context, t *v1alpha1.Tool) (*connect.ToolFacts, error) {
		o := o
		o.Tool = t
		return connect.Probe(ctx, o)
	}}
}

func (r *toolReconciler) setup(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("tool").
		For(&v1alpha1.Tool{}, builder.WithPredicates(predicate.Or(own(), predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Agent{}, r.namers(func() client.ObjectList { return &v1alpha1.ToolList{} }), builder.WithPredicates(matters())).
		WithOptions(controller.Options{MaxConcurrentReconciles: probesAtOnce}).
		Complete(untilStopped(r))
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
	var again ctrl.Result
	if v.why == reason.Accepted {
		p := r.ask(ctx, t)
		if ctx.Err() != nil {
			return ctrl.Result{}, context.Cause(ctx)
		}
		switch {
		case p.readiness.why != reason.Accepted: // what it lacks may come: a file, a mount, memory
			v, again.RequeueAfter = p.readiness, lookAgain
		case changed(t, p.digest):
			v = refused(reason.ToolChanged, "its program tells another description or schema than before: it was %s and is %s (to accept what it is now, annotate the tool with %s=%s, or change its spec)",
				t.Status.Digest, p.digest, AcceptDigest, p.digest)
		default:
			more["digest"] = p.digest
		}
		if p.program != "" {
			again.RequeueAfter = lookAgain
		}
	}
	return again, r.ready(ctx, t, v, more)
}

func (r *toolReconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.probed, name)
}

// ask tries the program of a tool, once for each generation of it and for each
// file that its program was.
func (r *toolReconciler) ask(ctx context.Context, t *v1alpha1.Tool) probed {
	r.mu.Lock()
	name := client.ObjectKeyFromObject(t)
	p, known := r.probed[name]
	r.mu.Unlock()
	file := programOf(t)
	if known && p.uid == t.UID && p.generation == t.Generation && p.program == file {
		return p
	}
	p = probed{uid: t.UID, generation: t.Generation, program: file, readiness: accepted}
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	facts, err := r.probe(limited, t)
	if err != nil {
		p.readiness = refused(whyUnusable(err), "%s", explained(err))
		return p
	}
	p.digest = facts.Digest
	r.mu.Lock()
	r.probed[name] = p
	r.mu.Unlock()
	return p
}

// changed reports whether the description of a tool differs both from the one with which
// this generation became ready, and from the accepted one.
func changed(t *v1alpha1.Tool, digest string) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.ObservedGeneration == t.Generation && t.Status.Digest != "" && t.Status.Digest != digest &&
		t.Annotations[AcceptDigest] != digest
}

// programOf looks at the files that the command of a tool names whose program is asked what it takes, to see
// whether they have become others. One that is found by the search path or lies in
// an image is not looked at: an image is named by its digest.
func programOf(t *v1alpha1.Tool) string {
	facts, err := sources.All().Facts(&t.Spec)
	if err != nil || !facts.Describes {
		return ""
	}
	var seen strings.Builder
	for _, word := range facts.Command {
		info, err := os.Stat(word)
		if !filepath.IsAbs(word) || err != nil {
			continue
		}
		fmt.Fprintf(&seen, "%s %d %d", word, info.Size(), info.ModTime().UnixNano())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			fmt.Fprintf(&seen, " %d", st.Ino)
		}
		seen.WriteByte('\n')
	}
	return seen.String()
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
