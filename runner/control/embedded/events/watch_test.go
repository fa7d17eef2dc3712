package events

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// follow watches until n changes have come.
func follow(t *testing.T, w watch.Interface, n int) []string {
	t.Helper()
	var got []string
	timeout := time.After(time.Minute)
	for len(got) < n {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %q", got)
			}
			got = append(got, line(e))
		case <-timeout:
			t.Fatalf("only %q came", got)
		}
	}
	return got
}

func line(e watch.Event) string {
	switch o := e.Object.(type) {
	case *corev1.Event:
		if e.Type == watch.Bookmark {
			return fmt.Sprintf("BOOKMARK %v", o.Annotations[metav1.InitialEventsAnnotationKey])
		}
		return fmt.Sprintf("%s %s x%d", e.Type, o.InvolvedObject.Name, o.Count)
	case *metav1.Status:
		return fmt.Sprintf("%s %s", e.Type, o.Reason)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

func version(s *Store) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.version, 10)
}

func TestWatchBeginsWhereItIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		options func(middle string) *internalversion.ListOptions
		want    []string
	}{
		"no options": {
			"what there is comes first", func(string) *internalversion.ListOptions { return nil },
			[]string{"ADDED b x1", "ADDED a x2", "ADDED c x1", "MODIFIED b x2"},
		},
		"version 0": {
			"any state will do", func(string) *internalversion.ListOptions { return &internalversion.ListOptions{ResourceVersion: "0"} },
			[]string{"ADDED b x1", "ADDED a x2", "ADDED c x1", "MODIFIED b x2"},
		},
		"a version": {
			"what has changed since", func(middle string) *internalversion.ListOptions {
				return &internalversion.ListOptions{ResourceVersion: middle}
			},
			[]string{"MODIFIED a x2", "ADDED c x1", "MODIFIED b x2"},
		},
		"initial events": {
			"a bookmark says where they end", func(middle string) *internalversion.ListOptions {
				return &internalversion.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersion: middle, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
			},
			[]string{"ADDED b x1", "ADDED a x2", "ADDED c x1", "BOOKMARK true", "MODIFIED b x2"},
		},
		"no initial events": {
			"only what is new", func(string) *internalversion.ListOptions {
				return &internalversion.ListOptions{SendInitialEvents: new(false)}
			},
			[]string{"MODIFIED b x2"},
		},
		"one object": {
			"the others are none of its business", func(string) *internalversion.ListOptions {
				return &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", "b")}
			},
			[]string{"ADDED b x1", "MODIFIED b x2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			s.Record(about("a", "Accepted", ""))
			s.Record(about("b", "Accepted", ""))
			middle := version(s)
			s.Record(about("a", "Accepted", ""))
			s.Record(about("c", "Accepted", ""))
			w, err := (&storage{store: s}).Watch(request.WithNamespace(t.Context(), "default"), c.options(middle))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			s.Record(about("b", "Accepted", ""))
			if diff := cmp.Diff(c.want, follow(t, w, len(c.want))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestWatchTellsOfWhatIsDropped(t *testing.T) {
	s := open(t, Options{PerObject: 1})
	w, err := (&storage{store: s}).Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Record(about("a", "Accepted", "first"))
	s.Record(about("a", "Accepted", "second"))
	if diff := cmp.Diff([]string{"ADDED a x1", "ADDED a x1", "DELETED a x1"}, follow(t, w, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestASlowReaderListsAgain: a slow reader is asked to list again, instead of
// missing events in silence.
func TestASlowReaderListsAgain(t *testing.T) {
	s := open(t, Options{})
	begin := version(s)
	w, err := (&storage{store: s}).Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Record(about("a", "Accepted", "-"))
	follow(t, w, 1)
	burst := func() {
		for i := range 3 * maxChanges {
			s.Record(about("a", "Accepted", fmt.Sprint(i%7)))
		}
	}
	burst()
	last := follow(t, w, 1)[0] // it has looked by now, and holds what it saw: or was too late already
	burst()
	for e := range w.ResultChan() {
		last = line(e)
	}
	if last != "ERROR Expired" {
		t.Errorf("the watch ends with %q", last)
	}
	for _, version := range []string{begin, "1", "18446744073709551615"} {
		_, err := (&storage{store: s}).Watch(t.Context(), &internalversion.ListOptions{ResourceVersion: version})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("from version %s: %v", version, err)
		}
	}
	if _, err := (&storage{store: s}).Watch(t.Context(), &internalversion.ListOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("from version x: %v", err)
	}
	if len(s.changes) > 2*maxChanges {
		t.Errorf("%d changes are kept", len(s.changes))
	}
}

// TestAWatchEndsWithItsRequest leaves no goroutine to wait for.
func TestAWatchEndsWithItsRequest(t *testing.T) {
	s := open(t, Options{})
	for name, end := range map[string]func(watch.Interface, context.CancelFunc){
		"stop":    func(w watch.Interface, _ context.CancelFunc) { w.Stop(); w.Stop() },
		"context": func(_ watch.Interface, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := (&storage{store: s}).Watch(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		end(w, cancel)
		for e := range w.ResultChan() {
			t.Errorf("%s: %s came", name, line(e))
		}
		cancel()
	}
}

func TestListSelects(t *testing.T) {
	s := open(t, Options{})
	s.Record(about("a", "Accepted", ""))
	e := about("b", "Completed", "")
	e.InvolvedObject.Namespace, e.Type = "other", corev1.EventTypeWarning
	s.Record(e)
	names := func(namespace string, o *internalversion.ListOptions) (got []string) {
		t.Helper()
		list, err := (&storage{store: s}).List(request.WithNamespace(t.Context(), namespace), o)
		if err != nil {
			t.Fatal(err)
		}
		events, _ := list.(*corev1.EventList)
		for i := range events.Items {
			got = append(got, events.Items[i].InvolvedObject.Name)
		}
		return got
	}
	for _, c := range []struct {
		namespace, field string
		want             []string
	}{
		{"", "", []string{"a", "b"}},
		{"default", "", []string{"a"}},
		{"none", "", nil},
		{"", "involvedObject.uid=uid-b", []string{"b"}},
		{"", "type!=Warning,reason=Accepted", []string{"a"}},
		{"", "source=test,involvedObject.kind=Run", []string{"a", "b"}},
		{"default", "involvedObject.namespace=other", nil},
	} {
		if diff := cmp.Diff(c.want, names(c.namespace, &internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(c.field)})); diff != "" {
			t.Errorf("%q %q: %s", c.namespace, c.field, diff)
		}
	}
	for _, o := range []internalversion.ListOptions{{Continue: "x"}, {ResourceVersionMatch: metav1.ResourceVersionMatchExact, ResourceVersion: "1"}} {
		if _, err := (&storage{store: s}).List(t.Context(), &o); !apierrors.IsResourceExpired(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
