package control

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func asked(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// TestWhatHappensGoesAheadOfWhatWaits: a run that waits to be begun and tells of
// its end comes first, too, although it stood at the end.
func TestWhatHappensGoesAheadOfWhatWaits(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	for i := range 100 {
		q.Add(asked(fmt.Sprint(i)))
	}
	ahead(q, asked("99"))
	ahead(q, asked("lived"))
	for _, want := range []string{"99", "lived", "0", "1"} {
		got, _ := q.Get()
		if got.Name != want {
			t.Errorf("got %s, want %s", got.Name, want)
		}
		q.Done(got)
	}
}

func TestAQueueWithoutPrioritiesIsGoodEnough(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	ahead(q, asked("lived"))
	if got, _ := q.Get(); got.Name != "lived" {
		t.Errorf("got %v", got)
	}
}
