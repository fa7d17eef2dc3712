package environment

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// watchEvery is how often the disk is looked at while a program runs.
const watchEvery = time.Second

// watch ends the execution when the copy, or the home of the program, outgrows what a call
// may add, or when the disk is full.
func (c *coding) watch(ctx context.Context, end context.CancelCauseFunc, files *workspace.Workspace) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		next := watchEvery
		for {
			timer := time.NewTimer(next)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			began := time.Now()
			if err := c.grown(ctx, files); err != nil && ctx.Err() == nil {
				end(err)
				return
			}
			next = max(watchEvery, 20*time.Since(began))
		}
	})
	return wg.Wait
}

// grown returns why the program has written too much; nil if it has not.
func (c *coding) grown(ctx context.Context, files *workspace.Workspace) error {
	if err := tool.Fits(c.dir, 0); err != nil {
		return fmt.Errorf("it was ended because it filled the disk: %w", err)
	}
	grown, err := files.Growth(ctx)
	if err != nil {
		return nil //nolint:nilerr // the tree changes while it is measured
	}
	home, err := fstree.Measure(ctx, c.home, workspace.MaxListed)
	if err != nil {
		return nil //nolint:nilerr // the same
	}
	if limit := files.GrowthLimit(); grown+home.Bytes > limit {
		return fmt.Errorf("it was ended because it has written more than %d MiB (spec.workspace.growthLimit)", limit>>20)
	}
	return nil
}
