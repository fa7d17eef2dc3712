package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// collector does for our kinds what the garbage collector of a cluster does, and runs
// where there is none. A finalizer records how an object is deleted:
//
//	foregroundDeletion   its dependents are deleted first, then the object
//	orphan               its dependents lose their owner reference, then the object is deleted
//
// An object that is deleted in the background has neither: the reconcilers of its
// dependents notice that it is gone.
type collector struct {
	client.Client
	// live reads from the API server: the cache may lack a dependent that was created a
	// moment ago.
	live client.Reader
}

// owned is an object that others may depend on.
type owned struct {
	kind string
	types.NamespacedName
}

func (c *collector) setup(m ctrl.Manager) error {
	b := builder.TypedControllerManagedBy[owned](m).Named("collector")
	for _, kind := range v1alpha1.Kinds() {
		obj, err := m.GetScheme().New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			return fmt.Errorf("follow what is deleted: %w", err)
		}
		b = b.Watches(obj.(client.Object), handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []owned { //nolint:forcetypeassert // each kind is one
			return concerned(kind, o)
		}), builder.WithPredicates(leaving()))
	}
	return b.Complete(untilStopped(c))
}

// concerned are the object itself and its owners.
func concerned(kind string, o client.Object) []owned {
	all := []owned{{kind, client.ObjectKeyFromObject(o)}}
	for _, r := range o.GetOwnerReferences() {
		if r.APIVersion == v1alpha1.GroupVersion.String() {
			all = append(all, owned{r.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name}})
		}
	}
	return all
}

// leaving lets objects pass that are being deleted, or are gone.
func leaving() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.Object.GetDeletionTimestamp().IsZero() },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !e.ObjectNew.GetDeletionTimestamp().IsZero() },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Reconcile does what the finalizers of an object that is being deleted ask for.
func (c *collector) Reconcile(ctx context.Context, o owned) (ctrl.Result, error) {
	return unlessChanged(ctrl.Result{}, c.collect(ctx, o))
}

func (c *collector) collect(ctx context.Context, o owned) error {
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(o.kind))
	switch err := c.live.Get(ctx, o.NamespacedName, owner); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", docName(o.kind, o.Name), err)
	case owner.DeletionTimestamp.IsZero():
		return nil
	}
	for _, f := range []struct {
		name string
		do   func(context.Context, *metav1.PartialObjectMetadata, metav1.PartialObjectMetadata) error
		wait bool
	}{
		{metav1.FinalizerOrphanDependents, c.release, false},
		{metav1.FinalizerDeleteDependents, c.remove, true},
	} {
		if !controllerutil.ContainsFinalizer(owner, f.name) {
			continue
		}
		all, err := c.dependents(ctx, owner)
		if err != nil {
			return err
		}
		for i := range all {
			err = errors.Join(err, f.do(ctx, owner, all[i]))
		}
		if err != nil || f.wait && len(all) > 0 {
			return err // the last of them to go brings us back
		}
		before := owner.DeepCopy()
		controllerutil.RemoveFinalizer(owner, f.name)
		if err := c.Patch(ctx, owner, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let go of %s: %w", docName(o.kind, o.Name), err)
		}
	}
	return nil
}

// dependents are the objects of our kinds that an object owns.
func (c *collector) dependents(ctx context.Context, owner *metav1.PartialObjectMetadata) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, kind := range v1alpha1.Kinds() {
		gvk := v1alpha1.GroupVersion.WithKind(kind)
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
		if err := c.live.List(ctx, all, client.InNamespace(owner.Namespace)); err != nil {
			return nil, fmt.Errorf("list what may depend on %s: %w", docName(owner.Kind, owner.Name), err)
		}
		for i := range all.Items {
			o := &all.Items[i]
			if slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
				o.SetGroupVersionKind(gvk)
				found = append(found, *o)
			}
		}
	}
	return found, nil
}

// release removes the owner from a dependent.
func (c *collector) release(ctx context.Context, owner *metav1.PartialObjectMetadata, o metav1.PartialObjectMetadata) error {
	before := o.DeepCopy()
	o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
	if err := c.Patch(ctx, &o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take %s from %s: %w", docName(o.Kind, o.Name), docName(owner.Kind, owner.Name), err)
	}
	return nil
}

// remove deletes a dependent, with its own.
func (c *collector) remove(ctx context.Context, owner *metav1.PartialObjectMetadata, o metav1.PartialObjectMetadata) error {
	if !o.DeletionTimestamp.IsZero() {
		return nil
	}
	err := c.Delete(ctx, &o, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &o.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, which depends on %s: %w", docName(o.Kind, o.Name), docName(owner.Kind, owner.Name), err)
	}
	return nil
}
