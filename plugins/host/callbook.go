package host

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// callbook tracks the running calls and ensures that none runs for ever.
type callbook struct {
	mu      sync.Mutex
	next    uint64
	refused bool // no new calls
	sealed  bool // no more waiting either
	flights map[uint64]*flight
	// wg counts the goroutines that wait for a tool to let go, or for an answer to it.
	wg sync.WaitGroup
}

// flight is a call whose tool may still be at work.
type flight struct {
	// cut resets the stream.
	cut context.CancelFunc
	// over is closed when nothing more will be received.
	over chan struct{}
	// leaving is set when the host waits for the tool to stop.
	leaving bool
}

func (b *callbook) open(cut context.CancelFunc) (uint64, *flight, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused {
		return 0, nil, false
	}
	b.next++
	f := &flight{cut: cut, over: make(chan struct{})}
	b.flights[b.next] = f
	return b.next, f, true
}

// close forgets a call that is over.
func (b *callbook) close(ticket uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.flights[ticket]; f != nil {
		f.cut()
		delete(b.flights, ticket)
	}
}

func (b *callbook) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = true
}

func (b *callbook) isRefused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// letGo asks the tool to end a call, in the background, and kills the program
// if it has not done so after the grace.
func (b *callbook) letGo(ticket uint64, p *Plugin) {
	b.mu.Lock()
	f := b.flights[ticket]
	if f == nil || f.leaving || b.sealed {
		b.mu.Unlock()
		return
	}
	f.leaving = true
	b.wg.Add(1)
	b.mu.Unlock()
	go func() {
		defer b.wg.Done()
		defer b.close(ticket)
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_, err := p.client.Cancel(ctx, &toolpb.CancelRequest{Ticket: ticket})
		switch {
		case err == nil: // its last words may still be on their way
			select {
			case <-f.over:
			case <-ctx.Done():
			}
		case status.Code(err) != codes.Unimplemented: // such a program gets the reset alone
			p.guard.kill("a call did not end when it was cancelled")
		}
	}()
}

// attend runs f for a call; the end of all calls waits for it. It returns false when the
// calls have ended.
func (b *callbook) attend(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return false
	}
	b.wg.Go(f)
	return true
}

// settleAll cancels every call and waits until all are over or ctx ends.
func (b *callbook) settleAll(ctx context.Context, p *Plugin) {
	b.mu.Lock()
	tickets := make([]uint64, 0, len(b.flights))
	for t := range b.flights {
		tickets = append(tickets, t)
	}
	b.mu.Unlock()
	for _, t := range tickets {
		b.letGo(t, p)
	}
	b.mu.Lock()
	b.sealed = true
	b.mu.Unlock()
	done := make(chan struct{})
	go func() { b.wg.Wait(); close(done) }() // ends with the grace of the slowest
	select {
	case <-done:
	case <-ctx.Done():
	}
	for _, t := range tickets {
		b.close(t)
	}
}
