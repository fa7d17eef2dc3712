package main

import (
	"context"
	"fmt"
	"time"
)

// ends is how many turns count as the begin and as the end of a long run.
const ends = 50

// measureLong has long conversations. What a turn costs may grow with what was
// said before it, but not faster than the floor's, which sends the same bodies.
func measureLong(ctx context.Context, b *bench, reps int) error {
	for _, turns := range []int{300, 1000} {
		t := talk{turns: turns}
		all, err := alternate(b, 0, reps, func(s side) (sample, error) { return b.converse(ctx, s, t, false) })
		if err != nil {
			return fmt.Errorf("%d turns: %w", turns, err)
		}
		b.report.long(turns, all)
	}
	return nil
}

func (r *report) long(turns int, all both[sample]) {
	of := fmt.Sprintf(" of %d turns", turns)
	compare(r, fmt.Sprintf("first %d%s p50", ends, of), "ms", all, func(s sample) float64 { return ms(s.early()) }, nil)
	compare(r, fmt.Sprintf("last %d%s p50", ends, of), "ms", all, func(s sample) float64 { return ms(s.late()) }, nil)
	compare(r, "growth from first to last"+of, "×", all, sample.growth, atMostFloor(1))
	compare(r, "wall"+of, "ms", all, sample.wall, nil)
}

func (s sample) early() time.Duration {
	return percentile(s.Overheads[:min(ends, len(s.Overheads))], 50)
}

func (s sample) late() time.Duration {
	return percentile(s.Overheads[max(0, len(s.Overheads)-ends):], 50)
}

// growth is how many times the first turns the last turns cost.
func (s sample) growth() float64 {
	if s.early() <= 0 {
		return 0
	}
	return float64(s.late()) / float64(s.early())
}
