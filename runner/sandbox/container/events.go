package container

import (
	"context"
	"fmt"
	"time"

	apievents "github.com/containerd/containerd/api/events"
	eventsapi "github.com/containerd/containerd/api/services/events/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/protobuf/proto"
)

// Bounds of a subscription that broke off.
const (
	resubscribeAfter = 100 * time.Millisecond
	resubscribeMost  = 5 * time.Second
)

// listen subscribes to the events of containers that run out of memory, once
// per Runtime and before the first container starts: a later subscription
// misses events.
func (r *Runtime) listen() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if r.heard {
		return nil
	}
	r.heard = true
	d := r.daemon
	session, err := d.subscribe(r.stopped, r.opts.Namespace)
	r.watchers.Go(func() { r.hear(d, session, err) })
	return nil
}

// subscription is a stream of events.
type subscription = eventsapi.Events_SubscribeClient

func (d *daemon) subscribe(ctx context.Context, namespace string) (subscription, error) {
	return d.events.Subscribe(ctx, &eventsapi.SubscribeRequest{Filters: []string{fmt.Sprintf("topic==%q,namespace==%q", "/tasks/oom", namespace)}})
}

// hear passes events on until the runtime is closed. The restart of the daemon
// ends the stream; hear then subscribes again.
func (r *Runtime) hear(d *daemon, session subscription, err error) {
	wait := resubscribeAfter
	for {
		for err == nil {
			var e *types.Envelope
			if e, err = session.Recv(); err == nil {
				wait = resubscribeAfter
				r.ranOut(e)
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-r.stopped.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = min(2*wait, resubscribeMost)
		session, err = d.subscribe(r.stopped, r.opts.Namespace)
	}
}

// ranOut marks the container an event speaks of, and what runs in it.
func (r *Runtime) ranOut(e *types.Envelope) {
	var oom apievents.TaskOOM
	if err := proto.Unmarshal(e.GetEvent().GetValue(), &oom); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.live {
		if p.group == oom.ContainerID {
			p.oomed.Do(func() { close(p.oom) })
		}
	}
}
