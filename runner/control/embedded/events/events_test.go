package events

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// clock advances when a test sets it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = newClock().Now
	}
	return Open(o)
}

// about is an event of an object.
func about(object, reason, message string) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Run", Namespace: "default", Name: object, UID: types.UID("uid-" + object)},
		Type:           corev1.EventTypeNormal, Reason: reason, Message: message, Source: corev1.EventSource{Component: "test"},
	}
}

// lines are the events of a store, shortly.
func lines(s *Store) []string {
	var all []string
	for _, e := range s.all() {
		all = append(all, fmt.Sprintf("%s %s %s x%d", e.InvolvedObject.Name, e.Reason, e.Message, e.Count))
	}
	return all
}

func want(t *testing.T, s *Store, lines_ ...string) {
	t.Helper()
	if diff := cmp.Diff(lines_, lines(s)); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
}

func TestEqualEventsAreCounted(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.Now})
	s.Record(about("a", "Accepted", ""))
	s.Record(about("b", "Accepted", ""))
	first := s.all()[0]
	c.add(90 * time.Second)
	s.Record(about("a", "Accepted", ""))
	s.Record(about("a", "Accepted", "otherwise"))
	want(t, s, "b Accepted  x1", "a Accepted  x2", "a Accepted otherwise x1")
	again := s.all()[1]
	if again.Name != first.Name || again.UID != first.UID || !again.FirstTimestamp.Equal(&first.FirstTimestamp) {
		t.Errorf("what happened again is another event: %v, was %v", again, first)
	}
	if d := again.LastTimestamp.Sub(first.LastTimestamp.Time); d != 90*time.Second || first.Count != 1 || again.ResourceVersion <= first.ResourceVersion {
		t.Errorf("last %v later, version %s after %s, the one handed out before says x%d", d, again.ResourceVersion, first.ResourceVersion, first.Count)
	}
}

func TestStoreIsBounded(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.Now, Limit: 4, PerObject: 2, Age: time.Hour})
	for i := range 5 {
		s.Record(about("noisy", "Accepted", fmt.Sprint(i)))
	}
	want(t, s, "noisy Accepted 3 x1", "noisy Accepted 4 x1")
	for _, name := range []string{"a", "b", "c"} {
		s.Record(about(name, "Accepted", ""))
	}
	want(t, s, "noisy Accepted 4 x1", "a Accepted  x1", "b Accepted  x1", "c Accepted  x1")
	c.add(40 * time.Minute)
	s.Record(about("b", "Accepted", "")) // it is the latest now
	c.add(30 * time.Minute)
	want(t, s, "b Accepted  x2")
	c.add(time.Hour)
	want(t, s)
	if len(s.events) != 0 || len(s.objects) != 0 {
		t.Errorf("what was dropped is still counted: %v %v", s.events, s.objects)
	}
}

func TestAnEventIsWhatAClusterTakes(t *testing.T) {
	s := open(t, Options{})
	s.Record(about(strings.Repeat("n", 253), "Accepted", strings.Repeat("é", 2000)))
	e := s.all()[0]
	if problems := validation.IsDNS1123Subdomain(e.Name); problems != nil {
		t.Errorf("the name %q: %v", e.Name, problems)
	}
	if len(e.Message) > maxNote || !strings.HasSuffix(e.Message, "é…") || strings.ContainsRune(e.Message, '�') {
		t.Errorf("the message has %d bytes and ends with %q", len(e.Message), e.Message[len(e.Message)-8:])
	}
	s.Record(about(strings.Repeat("n", 253), "Accepted", strings.Repeat("é", 2000)))
	if all := s.all(); len(all) != 1 || all[0].Count != 2 {
		t.Errorf("a long message makes events that are the same two: %d", len(all))
	}
}

// TestARecordedEventIsNotTheCallers: who records may use its value again.
func TestARecordedEventIsNotTheCallers(t *testing.T) {
	s := open(t, Options{})
	e := about("a", "Accepted", "")
	e.Name, e.Count, e.ResourceVersion = "forged", 99, "1"
	s.Record(e)
	e.Reason = "Changed"
	want(t, s, "a Accepted  x1")
	if s.all()[0].Name == "forged" {
		t.Error("the caller gives the name")
	}
}
