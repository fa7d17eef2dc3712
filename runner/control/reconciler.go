package control

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/runner"
)

// base is what every controller has.
type base struct {
	client.Client
	// live reads past the cache.
	live   client.Reader
	events EventSink
	now    func() time.Time
	shared *runner.Shared
}

// changedAgain is when an object is looked at again that somebody has changed
// meanwhile, or that the cache knows as it was before.
const changedAgain = 50 * time.Millisecond

// unlessChanged is the result of a controller. That somebody has changed or deleted
// an object since it was read is no failure: it is looked at again.
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
