package embedded

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/dynamic"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestHistoryIsForgottenAfterABusyTime runs alone: it ends the watches of others.
func TestHistoryIsForgottenAfterABusyTime(t *testing.T) {
	s := sharedServer(t)
	d, err := dynamic.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	runs := d.Resource(v1alpha1.GroupVersion.WithResource("runs")).Namespace("history")
	if _, err := runs.Apply(t.Context(), "one", runNamed("one"), metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	list, err := runs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := runs.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Stop()
	s.histories.forget(t.Context(), true) // notes what has been written so far
	wrote := func(n int64) {
		for one := range s.histories.all {
			one.writes.Add(n)
		}
	}
	wrote(forgetFrom)
	if s.histories.forget(t.Context(), true) {
		t.Error("forgotten while there were writes")
	}
	if s.histories.forget(t.Context(), false) {
		t.Error("a small history is forgotten although a client watches")
	}
	if !s.histories.forget(t.Context(), true) {
		t.Fatal("not forgotten after a while without writes")
	}
	if s.histories.forget(t.Context(), true) {
		t.Error("forgotten without writes since")
	}
	late := time.After(patient)
	for open := true; open; {
		select {
		case _, open = <-before.ResultChan():
		case <-late:
			t.Fatal("a watch of the cache of before does not end")
		}
	}
	if list, err = runs.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil || len(list.Items) != 1 {
		t.Fatalf("got %d objects, %v", len(list.Items), err)
	}
	after, err := runs.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Stop()
	if err := runs.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-after.ResultChan():
		if e.Type != watch.Deleted {
			t.Errorf("got %+v", e)
		}
	case <-late:
		t.Error("a watch of the new cache is told nothing")
	}
}

// TestALargeHistoryIsForgottenAlthoughAClientWatches runs alone, as the one above.
func TestALargeHistoryIsForgottenAlthoughAClientWatches(t *testing.T) {
	s := sharedServer(t)
	wrote := func(n int64) {
		for one := range s.histories.all {
			one.writes.Add(n)
		}
	}
	s.histories.forget(t.Context(), true)
	wrote(forgetLarge)
	if s.histories.forget(t.Context(), false) {
		t.Error("forgotten in the busy time")
	}
	wrote(forgetFrom - 1) // a client that writes now and then
	if !s.histories.forget(t.Context(), false) {
		t.Fatal("not forgotten while clients watch and write a little")
	}
	if s.histories.forget(t.Context(), false) {
		t.Error("forgotten twice")
	}
}

// TestAHugeHistoryIsForgottenInTheBusyTime runs alone, as those above.
func TestAHugeHistoryIsForgottenInTheBusyTime(t *testing.T) {
	s := sharedServer(t)
	busy := func(writes int64) (replaced int) {
		t.Helper()
		before := map[*history]storage.Interface{}
		for one := range s.histories.all {
			one.writes.Add(writes)
			before[one] = one.current()
		}
		if s.histories.forget(t.Context(), false) {
			t.Error("memory is given back in the busy time")
		}
		for one, cache := range before {
			if one.current() != cache {
				replaced++
			}
		}
		return replaced
	}
	s.histories.forget(t.Context(), true) // notes what has been written so far
	s.histories.forget(t.Context(), true) // forgets all but less than forgetFrom
	if n := busy(forgetHuge - forgetFrom); n != 0 {
		t.Errorf("%d are forgotten before they are huge", n)
	}
	if n := busy(forgetFrom); n != len(s.histories.all) {
		t.Errorf("%d of %d are forgotten when they are huge", n, len(s.histories.all))
	}
	if n := busy(forgetFrom); n != 0 {
		t.Errorf("%d are forgotten twice", n)
	}
}

// current is the cache that is in use.
func (h *history) current() storage.Interface {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.inner
}
