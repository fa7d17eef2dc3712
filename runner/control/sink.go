package control

import (
	"context"
	"log/slog"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
)

// EventSink records what happens to objects. For a cluster it is ClusterEvents, for an
// embedded API server a CoreSink.
type EventSink interface {
	// Record is called once for each change. It does not block.
	Record(ctx context.Context, obj client.Object, why reason.Reason, message string)
}

// SinkFunc lets a plain function be an EventSink.
type SinkFunc func(ctx context.Context, obj client.Object, why reason.Reason, message string)

// Record implements EventSink.
func (f SinkFunc) Record(ctx context.Context, obj client.Object, why reason.Reason, message string) {
	f(ctx, obj, why, message)
}

// LogSink writes what happens into a log.
func LogSink(l *slog.Logger) EventSink {
	return SinkFunc(func(ctx context.Context, obj client.Object, why reason.Reason, message string) {
		l.InfoContext(ctx, string(why), "kind", kindOf(obj), "namespace", obj.GetNamespace(), "name", obj.GetName(), "message", message)
	})
}

// Sinks passes events on to several sinks, in order.
func Sinks(all ...EventSink) EventSink {
	return SinkFunc(func(ctx context.Context, obj client.Object, why reason.Reason, message string) {
		for _, s := range all {
			s.Record(ctx, obj, why, message)
		}
	})
}
