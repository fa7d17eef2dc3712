package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
)

const (
	// eventsWaiting is how many events wait for the API server until further ones
	// are dropped.
	eventsWaiting = 1024
	// eventPatience bounds the writing of one.
	eventPatience = 10 * time.Second
	// maxNote is what the API server takes as the note of an event.
	maxNote = 1024
)

// ClusterEvents is the EventSink of a cluster: it writes events.k8s.io/v1.
type ClusterEvents struct {
	client   client.Client
	instance string
	log      *slog.Logger
	now      func() time.Time
	queue    chan *eventsv1.Event
}

// NewClusterEvents returns a sink that writes with a client whose scheme has
// events.k8s.io/v1; instance names the process that writes. The caller starts it.
func NewClusterEvents(c client.Client, instance string, log *slog.Logger, now func() time.Time) *ClusterEvents {
	return &ClusterEvents{client: c, instance: instance, log: log, now: now, queue: make(chan *eventsv1.Event, eventsWaiting)}
}

// Record implements EventSink.
func (c *ClusterEvents) Record(_ context.Context, obj client.Object, why reason.Reason, message string) {
	e := &eventsv1.Event{
		EventTime: metav1.NewMicroTime(c.now()), ReportingController: reporter(obj), ReportingInstance: c.instance,
		Action: "Reconcile", Reason: string(why), Regarding: regarding(obj), Type: severity(why), Note: note(message),
	}
	e.Namespace, e.Name = obj.GetNamespace(), eventName(e)
	select {
	case c.queue <- e:
	default:
		c.log.Warn("an event is dropped: the API server does not keep up", "object", docName(kindOf(obj), obj.GetName()), "reason", string(why))
	}
}

// eventName is equal for equal events, so that the API server recognises a repetition,
// whichever process wrote the first.
func eventName(e *eventsv1.Event) string {
	o := &e.Regarding
	sum := sha256.Sum256([]byte(strings.Join([]string{string(o.UID), o.Kind, o.Name, e.Type, e.Reason, e.Note}, "\x00")))
	const readable = 200
	return strings.TrimRight(o.Name[:min(len(o.Name), readable)], ".-") + "." + hex.EncodeToString(sum[:8])
}

func note(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len("…")], "") + "…"
}

// Start writes events until the context ends; it is a manager's Runnable.
func (c *ClusterEvents) Start(ctx context.Context) error {
	for {
		select {
		case e := <-c.queue:
			if err := c.write(ctx, e); err != nil && ctx.Err() == nil {
				c.log.Warn("an event cannot be written", "event", e.Name, "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// write makes an event, or counts one that is there.
func (c *ClusterEvents) write(ctx context.Context, e *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	when := e.EventTime
	err := c.client.Create(ctx, e)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write event %s: %w", e.Name, err)
	}
	there := &eventsv1.Event{}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(e), there); err != nil {
		return fmt.Errorf("read event %s: %w", e.Name, err)
	}
	before := there.DeepCopy()
	if there.Series == nil {
		there.Series = &eventsv1.EventSeries{Count: 1}
	}
	there.Series.Count++
	there.Series.LastObservedTime = when
	if err := c.client.Patch(ctx, there, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("count event %s: %w", e.Name, err)
	}
	return nil
}
