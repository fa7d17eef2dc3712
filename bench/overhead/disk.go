package main

import (
	"os"
	"path/filepath"
	"time"
)

// fsyncP50 measures the disk under dir: a short append and its fsync, which is
// what a durable journal pays twice a turn.
func fsyncP50(dir string) (time.Duration, error) {
	const times = 200
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line := make([]byte, 256)
	var all []time.Duration
	for range times {
		begin := time.Now()
		if _, err := f.Write(line); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin))
	}
	return percentile(all, 50), nil
}
