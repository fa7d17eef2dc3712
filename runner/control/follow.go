package control

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// refersTo is the index by which the objects are found that name another one.
const refersTo = "refersTo"

func index(to client.FieldIndexer) error {
	for _, kind := range []string{v1alpha1.KindAgent, v1alpha1.KindModel, v1alpha1.KindTool, v1alpha1.KindRun, v1alpha1.KindTest} {
		if err := to.IndexField(context.Background(), newObject(kind), refersTo, referenceKeys); err != nil {
			return err
		}
	}
	return to.IndexField(context.Background(), &v1alpha1.Approval{}, asksFor, runOf)
}

// runOf names the run that an Approval is about.
func runOf(obj client.Object) []string {
	if a, ok := obj.(*v1alpha1.Approval); ok {
		return []string{a.Spec.RunRef.Name}
	}
	return nil
}

// namers maps an object to those of a list's kind that name it.
func (b *base) namers(newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		key := reference{kindOf(obj), obj.GetName()}.key()
		return b.listed(ctx, newList(), client.InNamespace(obj.GetNamespace()), client.MatchingFields{refersTo: key})
	})
}

// neighbours maps an object to all of a list's kind in its namespace.
func (b *base) neighbours(newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return b.listed(ctx, newList(), client.InNamespace(obj.GetNamespace()))
	})
}

func (b *base) listed(ctx context.Context, list client.ObjectList, o ...client.ListOption) []reconcile.Request {
	if err := b.List(ctx, list, append(o, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // the cache is being stopped: nothing follows any more
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if m, ok := o.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}})
		}
		return nil
	})
	return requests
}

// matters lets those changes of an object pass that others may depend on: its
// spec, its labels, whether it is ready, and that it is being deleted.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			readyOf(e.ObjectOld) != readyOf(e.ObjectNew)
	}}
}

// own lets those changes of an object pass that its own controller is to see:
// all but what it writes itself.
func own() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// phases passes on those changes that end a run, after which the executor can forget it.
// It must not forget a run that the cache still shows as running.
func phases() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*v1alpha1.Run)
			after, ok2 := e.ObjectNew.(*v1alpha1.Run)
			return ok1 && ok2 && before.Status.Phase != after.Status.Phase
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// readyState is the part of a Ready condition that other objects depend on.
type readyState struct {
	status, why, message string
	generation           int64
}

func readyOf(obj client.Object) readyState {
	c := meta.FindStatusCondition(conditionsOf(obj), v1alpha1.ConditionReady)
	if c == nil {
		return readyState{}
	}
	return readyState{string(c.Status), c.Reason, c.Message, c.ObservedGeneration}
}
