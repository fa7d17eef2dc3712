package main

import (
	"context"
	"errors"
)

// measureCold starts programs that have to be read from the disk first.
func measureCold(ctx context.Context, b *bench, reps int) error {
	var files []string
	for _, s := range b.sides {
		files = append(files, s.files...)
	}
	cache, err := newPageCache(files)
	if err != nil {
		return err
	}
	defer cache.close()
	b.report.note("%s", cache.how)
	all, err := alternate(b, 0, reps, func(s side) (sample, error) {
		if err := cache.drop(); err != nil {
			return sample{}, err
		}
		got, err := b.converse(ctx, s, talk{turns: 2}, false)
		if err == nil && got.DiskReads == 0 {
			err = errors.New("nothing was read from the disk: is the folder in memory?")
		}
		return got, err
	})
	if err != nil {
		return err
	}
	compare(b.report, "cold start, page cache dropped", "ms", all, sample.cold, atMost(70))
	compare(b.report, "reads that waited for the disk", "faults", all, func(s sample) float64 { return float64(s.DiskReads) }, nil)
	return nil
}
