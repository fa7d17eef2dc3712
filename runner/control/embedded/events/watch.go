package events

import (
	"context"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher sends changes to one reader. It has no queue: a slow reader reads
// from the store's own list of changes, until the position of the reader has
// been dropped from that list.
type watcher struct {
	store   *Store
	matches func(*corev1.Event) bool
	result  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.once.Do(func() { close(w.stopped) }) }

// start is what a watch begins with.
type start struct {
	// version is the last version that the reader has.
	version uint64
	// state are events to begin with, as if they had just been added.
	state []*corev1.Event
	// bookmark sends the reader a bookmark after the existing events.
	bookmark bool
}

// run sends changes until the reader stops.
func (w *watcher) run(ctx context.Context, from start) {
	defer close(w.result)
	for _, e := range from.state {
		if w.matches(e) && !w.send(ctx, watch.Event{Type: watch.Added, Object: copied(e)}) {
			return
		}
	}
	if from.bookmark && !w.send(ctx, bookmark(from.version)) {
		return
	}
	for version := from.version; ; {
		changes, now, more, err := w.store.after(version)
		if err != nil {
			w.send(ctx, gone(err))
			return
		}
		for _, c := range changes {
			if w.matches(c.event) && !w.send(ctx, watch.Event{Type: c.typ, Object: copied(c.event)}) {
				return
			}
		}
		version = now
		select {
		case <-more:
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.result <- e:
		return true
	case <-w.stopped:
	case <-ctx.Done():
	}
	return false
}

// bookmark ends the state with which a watch began.
func bookmark(version uint64) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.FormatUint(version, 10),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}}
}

// gone has the reader list again.
func gone(err error) watch.Event {
	status := apierrors.NewInternalError(err).Status()
	if s, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // made by after, which wraps nothing
		status = s.Status()
	}
	return watch.Event{Type: watch.Error, Object: &status}
}
