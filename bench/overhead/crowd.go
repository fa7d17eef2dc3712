package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	crowdSize = 8  // processes at once
	crowdRuns = 32 // runs in all, so that ends overlap with begins
)

// measureCrowd runs many processes at once, each with the plain conversation.
func measureCrowd(ctx context.Context, b *bench, reps int) error {
	all, err := alternate(b, 0, reps, func(s side) (float64, error) { return b.crowd(ctx, s) })
	if err != nil {
		return err
	}
	compare(b.report, "8 processes at once", "runs/s", all, func(rate float64) float64 { return rate }, atLeast(0.5).ofFloor())
	return nil
}

// crowd returns the runs per second of one side.
func (b *bench) crowd(ctx context.Context, s side) (float64, error) {
	jobs := make(chan *job, crowdRuns)
	for range crowdRuns {
		j, err := s.prepare(ctx, b.dir, talk{turns: b.turns})
		if err != nil {
			return 0, err
		}
		defer j.close()
		jobs <- j
	}
	close(jobs)
	errs := make([]error, crowdSize)
	var group sync.WaitGroup
	begin := time.Now()
	for i := range crowdSize {
		group.Go(func() {
			for j := range jobs {
				if _, err := j.run(ctx, false); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return crowdRuns / took.Seconds(), leftBehind()
}
