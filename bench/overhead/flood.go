package main

import (
	"context"
	"errors"
)

// floodBytes is what one command prints.
const floodBytes = 200_000_000

// measureFlood weighs the runner, without its children, in a run whose first
// command prints a lot, and in one whose first command does not.
func measureFlood(ctx context.Context, b *bench, reps int) error {
	s := b.sides[len(b.sides)-1] // the floor keeps all that a command prints
	var growth, wall []float64
	for range reps {
		quiet, err := b.converse(ctx, s, talk{turns: 2}, true)
		if err != nil {
			return err
		}
		loud, err := b.converse(ctx, s, talk{turns: 2, flood: floodBytes}, true)
		if err != nil {
			return err
		}
		if loud.Wall < quiet.Wall || loud.Memory.Top == 0 {
			return errors.New("nothing was printed, or nothing weighed")
		}
		growth = append(growth, megabytes(loud.Memory.Top-quiet.Memory.Top))
		wall = append(wall, loud.wall())
	}
	b.report.alone("growth of the runner by 200 MB of output", "MB", percentile(growth, 50), atMost(16))
	b.report.alone("the run, start to end", "ms", percentile(wall, 50), nil)
	return nil
}
