package loop

import "context"

// places bound the calls that run at the same time.
type places interface {
	// take waits for a place. An error means that the call has none.
	take(ctx context.Context, c *call) error
	free(c *call)
}

// slots are the places of calls that may all overlap.
type slots chan struct{}

func (s slots) take(ctx context.Context, _ *call) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) free(*call) { <-s }
