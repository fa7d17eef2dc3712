package control

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestWhatWasChangedMeanwhileIsLookedAtAgain(t *testing.T) {
	changed := apierrors.NewConflict(schema.GroupResource{Resource: "runs"}, "one", errors.New("changed"))
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"nothing":  {nil, false},
		"conflict": {fmt.Errorf("claim run: %w", changed), true},
		"joined":   {errors.Join(nil, fmt.Errorf("take it: %w", changed)), true},
		"failure":  {errors.New("no network"), false},
		"deleted":  {fmt.Errorf("claim run: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "runs"}, "one")), true},
	} {
		result, err := unlessChanged(ctrl.Result{RequeueAfter: 7}, c.err)
		if c.again && (err != nil || result.RequeueAfter != changedAgain) || !c.again && (!errors.Is(err, c.err) || result.RequeueAfter != 7) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}

// TestACollectorIsNotAlone changes an owner while the collector removes its finalizer.
func TestACollectorIsNotAlone(t *testing.T) {
	b := newBench(t, workerYAML)
	agent := &v1alpha1.Agent{}
	key := client.ObjectKey{Namespace: "ns", Name: "worker"}
	if err := b.Get(t.Context(), key, agent); err != nil {
		t.Fatal(err)
	}
	controllerutil.AddFinalizer(agent, metav1.FinalizerDeleteDependents)
	if err := errors.Join(b.Update(t.Context(), agent), b.Delete(t.Context(), agent)); err != nil {
		t.Fatal(err)
	}
	others := 1
	c := &collector{live: b.live, Client: interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one watches
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			if others--; others == 0 {
				if err := errors.Join(b.Get(ctx, key, agent), b.label(ctx, agent)); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, p, o...)
		},
	})}
	o := owned{v1alpha1.KindAgent, key}
	if result, err := c.Reconcile(t.Context(), o); err != nil || result.RequeueAfter != changedAgain {
		t.Fatalf("%+v, %v, want that it is looked at again", result, err)
	}
	if result, err := c.Reconcile(t.Context(), o); err != nil || !result.IsZero() {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := b.Get(t.Context(), key, agent); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestNothingIsTriedWhenItStops(t *testing.T) {
	tried := 0
	r := untilStopped(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		tried++
		return ctrl.Result{RequeueAfter: time.Second}, errors.New("tried")
	}))
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); tried != 1 || err == nil || result.RequeueAfter != time.Second {
		t.Errorf("before: tried %d times, %v, %v", tried, result, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if result, err := r.Reconcile(ctx, ctrl.Request{}); tried != 1 || err != nil || result != (ctrl.Result{}) {
		t.Errorf("afterwards: tried %d times, %v, %v", tried, result, err)
	}
}
