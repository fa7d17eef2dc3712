package loop

import (
	"context"
	"errors"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// performAll runs what is left in call order: neighbours that may overlap run
// together, an exclusive call runs alone.
func (l *loop) performAll(ctx context.Context, calls []*call) (*End, error) {
	places := make(slots, max(1, l.Limits.MaxParallel))
	for len(calls) > 0 {
		n := 1
		for !calls[0].exclusive && n < len(calls) && !calls[n].exclusive {
			n++
		}
		end, err := l.performBatch(ctx, calls[:n], places)
		if err != nil || end != nil {
			return end, errors.Join(err, l.abandonIf(end, calls[n:]))
		}
		calls = calls[n:]
		for _, c := range calls {
			c.waited = true
		}
	}
	return nil, nil
}

func (l *loop) abandonIf(end *End, calls []*call) error {
	if end == nil || end.Suspended {
		return nil
	}
	return l.abandon(calls, message.CodeCancelled, "not run: the run ended before")
}

func (l *loop) performBatch(ctx context.Context, calls []*call, places slots) (*End, error) {
	if err := l.synced(nil); err != nil { // a late sync may have failed
		return nil, err
	}
	ends, errs := make([]*End, len(calls)), make([]error, len(calls))
	var wg sync.WaitGroup
	line(calls)
	for i, c := range calls {
		if c.done {
			continue
		}
		c.waited = c.waited || len(calls) > 1 || c.decision.Action == message.Ask
		perform := func() {
			defer close(c.ended)
			if ends[i], errs[i] = l.perform(ctx, c, places); errs[i] != nil {
				l.cancel(errs[i]) // what ends the run ends its other calls too
			}
		}
		if len(calls) == 1 {
			perform() // as most answers have it: another goroutine would wake another thread
		} else {
			wg.Go(perform)
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, end := range ends {
		if end != nil {
			return end, nil
		}
	}
	return nil, nil
}

// line has each call wait for those before it in the answer that may change the files by
// which it is judged.
func line(calls []*call) {
	for i, c := range calls {
		c.behind, c.ended = nil, make(chan struct{})
		for _, before := range calls[:i] {
			if c.decision.Depends && before.decision.Alters && !before.done {
				c.behind = append(c.behind, before)
			}
		}
	}
}

// wait returns when the calls that this one is behind have ended.
func (c *call) wait(ctx context.Context) error {
	for _, before := range c.behind {
		select {
		case <-before.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// perform asks where the policy requires it, makes the intent durable, and runs
// the call.
func (l *loop) perform(ctx context.Context, c *call, in places) (*End, error) {
	for ready := false; !ready; {
		if c.decision.Action == message.Ask && !c.approved {
			end, err := l.approve(ctx, c)
			if c.done || end != nil || err != nil {
				return end, err
			}
		}
		if err := c.wait(ctx); err != nil {
			return nil, err
		}
		if err := in.take(ctx, c); err != nil {
			return nil, err
		}
		var err error
		if ready, err = l.confirm(ctx, c); !ready || err != nil || ctx.Err() != nil {
			in.free(c) // a call that is asked about again must not block others
		}
		if c.done || err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	defer in.free(c)
	if err := l.tell(c, event.ToolCall{Tool: c.Tool, Args: c.Args, Key: l.View.ID + "/" + c.ID, Attempt: c.attempt}); err != nil {
		return nil, err
	}
	if err := l.durable(); err != nil {
		return nil, err
	}
	running := c.ToolCall
	running.Outside, running.Binding = c.decision.Outside, c.decision.Binding
	result, err := l.Toolbox.Run(ctx, running, func(text string) {
		_ = l.tell(c, event.ToolProgress{Text: text}) // a failed write is kept in l.broken
	})
	if err != nil {
		code := message.CodeTool
		if ctx.Err() != nil {
			code = message.CodeCancelled
		}
		return nil, errors.Join(err, l.failWith(c, message.ToolResult{Code: code, Text: err.Error(), Origin: c.origin()}))
	}
	return nil, l.end(ctx, c, result)
}
