package control

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	var got []string
	for range 101 { // a queue that is shut down with something in it never ends
		next, _ := q.Get()
		got = append(got, next.Name)
		q.Done(next)
	}
	if diff := cmp.Diff([]string{"99", "lived", "0", "1"}, got[:4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
