package control

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func asked(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// TestWhatHappensGoesAheadOfWhatWaits: a queued run comes first, too, when there is an
// event about its end, although it was last.
func TestWhatHappensGoesAheadOfWhatWaits(t *testing.T) {
	l := newPriorityQueue()
	q := l.queue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	ahead := func(name string) {
		l.ahead(asked(name))
		q.Add(asked(name))
	}
	next := func() string {
		req, _ := q.Get()
		defer q.Done(req)
		return req.Name
	}
	for i := range 100 {
		q.Add(asked(fmt.Sprint(i)))
	}
	ahead("99")
	ahead("lived")
	ahead("99")
	if q.Len() != 101 {
		t.Errorf("%d are queued", q.Len())
	}
	var got []string
	for range 101 {
		got = append(got, next())
	}
	if diff := cmp.Diff([]string{"99", "lived", "0", "1"}, got[:4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 101 || q.Len() != 0 {
		t.Errorf("%d different ones, %d are left", n, q.Len())
	}
	// One with an event while it is processed is ahead the next time.
	q.Add(asked("busy"))
	req, _ := q.Get()
	q.Add(asked("waits"))
	ahead("busy")
	q.Done(req)
	if first, second := next(), next(); first != "busy" || second != "waits" {
		t.Errorf("%s, then %s", first, second)
	}
	// It stays ahead, whatever adds it, until it has ended.
	q.Add(asked("waits"))
	q.AddRateLimited(asked("busy"))
	for q.Len() < 2 {
		runtime.Gosched()
	}
	if first, second := next(), next(); first != "busy" || second != "waits" {
		t.Errorf("%s, then %s", first, second)
	}
	for _, name := range []string{"99", "lived", "busy"} {
		l.behind(asked(name))
	}
	q.Add(asked("waits"))
	q.Add(asked("busy"))
	if first, second := next(), next(); first != "waits" || second != "busy" {
		t.Errorf("%s, then %s", first, second)
	}
	if len(l.first) != 0 || len(l.lane) != 0 {
		t.Errorf("something is kept: %v, %v", l.first, l.lane)
	}
}
