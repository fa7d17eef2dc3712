// Package events keeps what happened to objects lately and serves it, read-only, as the core events that kubectl shows.
//
// A cluster keeps its events in etcd for an hour. Here they are in memory,
// bounded by number and age, and in a file that a restart reads. Nothing
// depends on an event, so it is not worth a transaction.
package events

import (
	"cmp"
	"container/list"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// DefaultLimit is how many events are kept.
	DefaultLimit = 2048
	// DefaultPerObject is how many events are kept of one object. So an object
	// with very many events does not push out those of the others.
	DefaultPerObject = 32
	// DefaultAge is how long an event is kept after it happened last. It is longer
	// than a cluster's hour: people come back to a small control plane the next day.
	DefaultAge = 24 * time.Hour
	// maxNote bounds the message, as a cluster does.
	maxNote = 1024
	// maxName bounds the part of an event's name that is that of its object: names
	// have 253 bytes, of which a dot and a number take up to 17.
	maxName = 236
	// maxChanges is how far behind a watch may fall before it has to list again.
	maxChanges = 1024
)

// Options bound a Store.
type Options struct {
	// Path is the file that a restart reads. Empty: none.
	Path string
	// Limit, PerObject and Age are the bounds; 0 are the defaults.
	Limit, PerObject int
	Age              time.Duration
	// Log is called when the file cannot be read or written. Required with a
	// Path.
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Store keeps events. The events that it returns are never changed: an event
// that happens again is another value.
type Store struct {
	o    Options
	file *file

	mu      sync.Mutex
	version uint64
	events  map[identity]*list.Element // of *corev1.Event
	order   *list.List                 // by the time it happened last
	objects map[types.UID]int          // how many events there are of an object
	changes []change                   // the latest, by version
	oldest  uint64                     // the version before the first of the changes
	more    chan struct{}              // closed with the next change
}

// identity is the key of an event: two with the same key are one event that
// happened twice.
type identity struct {
	object                types.UID
	kind, namespace, name string
	typ, reason, message  string
	source                string
}

func identityOf(e *corev1.Event) identity {
	o := &e.InvolvedObject
	return identity{o.UID, o.Kind, o.Namespace, o.Name, e.Type, e.Reason, e.Message, e.Source.Component}
}

// change is one event of a watch.
type change struct {
	version uint64
	typ     watch.EventType
	event   *corev1.Event
}

// Open returns a store with what its file holds. Close it.
func Open(o Options) *Store {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	o.PerObject = cmp.Or(o.PerObject, DefaultPerObject)
	o.Age = cmp.Or(o.Age, DefaultAge)
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock
	}
	s := &Store{o: o, events: map[identity]*list.Element{}, order: list.New(), objects: map[types.UID]int{}, more: make(chan struct{})}
	// A version is never given twice, even if the file lost its end: they begin
	// with the time, which they do not overtake.
	s.version = uint64(max(o.Now().UnixMilli(), 1)) //nolint:gosec // not negative
	if o.Path != "" {
		s.load()
	}
	s.oldest = s.version
	return s
}

// load reads the file and begins to write it. If the file cannot be written,
// the server starts anyway: on a full disk objects must be deletable.
func (s *Store) load() {
	kept, whole, err := read(s.o.Path, 2*s.o.Limit)
	if err != nil {
		s.o.Log.Warn("the events of before cannot be read", "path", s.o.Path, "error", err)
	}
	for _, e := range kept {
		if v, err := strconv.ParseUint(e.ResourceVersion, 10, 63); err == nil {
			s.version = max(s.version, v)
			s.put(e)
		}
	}
	s.bound()
	s.changes = nil // no client has a version from before these
	s.file = &file{path: s.o.Path, limit: s.o.Limit, all: s.all, log: s.o.Log, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if whole && len(kept) <= s.o.Limit {
		err = s.file.reopen(len(kept))
	} else {
		err = s.file.rewrite()
	}
	s.file.tell(err)
	go s.file.run()
}

// Close writes what is not written yet. The store must not be used after it.
func (s *Store) Close() error {
	if s.file == nil {
		return nil
	}
	if err := s.file.close(); err != nil {
		return fmt.Errorf("write the events to %s: %w", s.o.Path, err)
	}
	return nil
}

// Record keeps an event: what it is about, its type, reason, message and
// source; the rest is the store's. It does not wait for the disk.
func (s *Store) Record(e *corev1.Event) {
	now := metav1.NewTime(s.o.Now().Truncate(time.Second))
	e = e.DeepCopy()
	e.Message = shorten(e.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	if old, again := s.events[identityOf(e)]; again {
		before, _ := old.Value.(*corev1.Event) // the list has no other values
		e = before.DeepCopy()
		e.Count++
		e.LastTimestamp = now
		e.ResourceVersion = strconv.FormatUint(s.version, 10)
	} else {
		s.name(e, now)
	}
	s.put(e)
	s.bound()
	if s.file != nil {
		s.file.add(e)
	}
}

// name names an event that has not happened before.
func (s *Store) name(e *corev1.Event, now metav1.Time) {
	o := &e.InvolvedObject
	e.ObjectMeta = metav1.ObjectMeta{
		Name:      fmt.Sprintf("%.*s.%x", maxName, o.Name, s.version),
		Namespace: cmp.Or(o.Namespace, metav1.NamespaceDefault), UID: uuid.NewUUID(),
		CreationTimestamp: now, ResourceVersion: strconv.FormatUint(s.version, 10),
	}
	e.FirstTimestamp, e.LastTimestamp, e.Count = now, now, 1
	e.TypeMeta = metav1.TypeMeta{}
}

func shorten(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len("…")], "") + "…"
}

// put makes an event the latest. The mutex is held, or no other goroutine has
// the store.
func (s *Store) put(e *corev1.Event) {
	id, typ := identityOf(e), watch.Added
	if old, again := s.events[id]; again {
		s.order.Remove(old)
		typ = watch.Modified
	} else {
		s.objects[id.object]++
	}
	s.events[id] = s.order.PushBack(e)
	s.changed(typ, e)
	if s.objects[id.object] > s.o.PerObject {
		s.drop(s.firstOf(id.object))
	}
}

// bound drops what is too old or too much. The mutex is held.
func (s *Store) bound() {
	limit := s.o.Now().Add(-s.o.Age)
	for first := s.order.Front(); first != nil; first = s.order.Front() {
		if e, _ := first.Value.(*corev1.Event); s.order.Len() <= s.o.Limit && e.LastTimestamp.After(limit) {
			return
		}
		s.drop(first)
	}
}

func (s *Store) firstOf(object types.UID) *list.Element {
	for el := s.order.Front(); el != nil; el = el.Next() {
		if e, _ := el.Value.(*corev1.Event); e.InvolvedObject.UID == object {
			return el
		}
	}
	return nil
}

func (s *Store) drop(el *list.Element) {
	e, _ := s.order.Remove(el).(*corev1.Event)
	id := identityOf(e)
	delete(s.events, id)
	if s.objects[id.object]--; s.objects[id.object] == 0 {
		delete(s.objects, id.object)
	}
	s.version++
	gone := e.DeepCopy()
	gone.ResourceVersion = strconv.FormatUint(s.version, 10)
	s.changed(watch.Deleted, gone)
}

// changed records a change for the watches.
func (s *Store) changed(typ watch.EventType, e *corev1.Event) {
	if len(s.changes) >= 2*maxChanges {
		s.oldest = s.changes[maxChanges-1].version
		s.changes = append([]change(nil), s.changes[maxChanges:]...)
	}
	s.changes = append(s.changes, change{s.version, typ, e})
	close(s.more)
	s.more = make(chan struct{})
}

func (s *Store) all() []*corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, _ := s.list()
	return all
}

// list returns the events, the latest at the end, and their version. The mutex
// is held.
func (s *Store) list() ([]*corev1.Event, uint64) {
	s.bound()
	all := make([]*corev1.Event, 0, s.order.Len())
	for el := s.order.Front(); el != nil; el = el.Next() {
		e, _ := el.Value.(*corev1.Event)
		all = append(all, e)
	}
	return all, s.version
}

// after returns what changed after a version, the version that this leads to,
// and a channel that is closed with the next change.
func (s *Store) after(version uint64) (changes []change, now uint64, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.oldest || version > s.version {
		return nil, 0, nil, apierrors.NewResourceExpired(fmt.Sprintf("resource version %d is too old or of another server: list the events again", version))
	}
	for i := range s.changes {
		if s.changes[i].version > version {
			changes = append(changes, s.changes[i:]...)
			break
		}
	}
	return changes, s.version, s.more, nil
}
