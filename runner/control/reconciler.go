package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
)

// base is what every controller has.
type base struct {
	client.Client
	// live reads from the API server, not the cache.
	live   client.Reader
	events EventSink
	now    func() time.Time
	shared *runner.Shared
	// startedBy is the identity that began a run, "" where that is not known; nil:
	// nothing vouches for it.
	startedBy func(*v1alpha1.Run) string
}

// changedAgain is the time until the next look at an object that was changed meanwhile, or
// that the cache has in an old version.
const changedAgain = 50 * time.Millisecond

// unlessChanged is the result of a controller. An object that was changed or deleted since
// it was read is not an error: it is processed again.
func unlessChanged(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: changedAgain}, nil
	}
	return result, err
}

// judged is the whole of a controller whose objects are judged by their text.
func (b *base) judged(ctx context.Context, req ctrl.Request, obj client.Object) (ctrl.Result, error) {
	if err := b.Get(ctx, req.NamespacedName, obj); err != nil || !obj.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, done, err := b.judge(ctx, obj)
	if err != nil || !done {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, b.ready(ctx, obj, v, nil)
}

// roomAgain is when an object is looked at again whose write was refused because
// the disk of the API server is full.
const roomAgain = 5 * time.Second

// refusedForRoom reports whether a write was refused because the disk of the API server is
// full. The server has reported that once; as an error each object would report it again,
// and back off longer after every attempt.
func refusedForRoom(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage
}

// untilStopped lets go of what waits in a queue when the controllers stop: of
// thousands of objects each would still be tried to be written, in vain, and the
// next plane looks at all of them anyway.
func untilStopped[R comparable](r reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	return reconcile.TypedFunc[R](func(ctx context.Context, of R) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil //nolint:nilerr // not an error
		}
		result, err := r.Reconcile(ctx, of)
		if refusedForRoom(err) {
			return ctrl.Result{RequeueAfter: roomAgain}, nil
		}
		return result, err
	})
}
