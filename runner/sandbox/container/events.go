package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	apievents "github.com/containerd/containerd/api/events"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/events"
	"google.golang.org/protobuf/proto"
)

// Bounds of a subscription that broke off.
const (
	resubscribeAfter = 100 * time.Millisecond
	resubscribeMost  = 5 * time.Second
)

// listen begins to hear of containers that run out of memory, once per Runtime
// and before the first container starts: who subscribes later has missed it.
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
	client := r.client
	envelopes, errs := subscribe(r.stopped, client, r.opts.Namespace)
	r.watchers.Go(func() { r.hear(client, envelopes, errs) })
	return nil
}

func subscribe(ctx context.Context, client *containerd.Client, namespace string) (<-chan *events.Envelope, <-chan error) {
	return client.EventService().Subscribe(ctx, fmt.Sprintf("topic==%q,namespace==%q", "/tasks/oom", namespace))
}

// hear passes events on until the runtime is closed.
func (r *Runtime) hear(client *containerd.Client, envelopes <-chan *events.Envelope, errs <-chan error) {
	wait := resubscribeAfter
	for {
		select {
		case <-r.stopped.Done():
			return
		case e := <-envelopes:
			wait = resubscribeAfter
			r.ranOut(e)
			continue
		case err := <-errs:
			if r.stopped.Err() != nil || errors.Is(err, context.Canceled) {
				return
			}
		}
		t := time.NewTimer(wait) // the daemon is being restarted, perhaps
		select {
		case <-r.stopped.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = min(2*wait, resubscribeMost)
		envelopes, errs = subscribe(r.stopped, client, r.opts.Namespace)
	}
}

// ranOut marks the container an event speaks of, and what runs in it.
func (r *Runtime) ranOut(e *events.Envelope) {
	if e == nil || e.Event == nil {
		return
	}
	var oom apievents.TaskOOM
	if err := proto.Unmarshal(e.Event.GetValue(), &oom); err != nil {
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
