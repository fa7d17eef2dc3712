package mcpserver

import (
	"context"

	"agentctl.dev/agentctl/api/reason"
)

// goneKey is the key of the channel that is closed when nobody waits for a request any
// more. The protocol's package keeps the values of a context and not its end.
type goneKey struct{}

var errGone = reason.New(reason.Cancelled, "the client no longer waits")

// untilGone returns a context that also ends when the client of a request is gone.
func untilGone(ctx context.Context) (context.Context, func()) {
	gone, ok := ctx.Value(goneKey{}).(<-chan struct{})
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-gone:
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
