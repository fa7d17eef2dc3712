package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// initWork is what a program does before its main begins.
type initWork struct {
	// Total of all packages, and the slowest one, in milliseconds.
	Total, Slowest float64
	Package        string
}

func measureStart(ctx context.Context, b *bench, reps int) error {
	work, err := measureInit(ctx, b.agentctl, reps)
	if err != nil {
		return err
	}
	b.report.alone("init before main, all packages", "ms", work.Total, nil)
	b.report.alone("slowest init: "+work.Package, "ms", work.Slowest, atMost(1))
	return nil
}

// measureInit starts a program some times and keeps the least of each package:
// what disturbs only adds.
func measureInit(ctx context.Context, program string, times int) (initWork, error) {
	least := map[string]float64{}
	for range times {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		cmd := exec.CommandContext(ctx, program, "version")
		cmd.Env = []string{"GODEBUG=inittrace=1", "HOME=" + os.TempDir()}
		var trace strings.Builder
		cmd.Stderr = &trace
		err := cmd.Run()
		cancel()
		if err != nil {
			return initWork{}, fmt.Errorf("%s version: %w", program, err)
		}
		for name, ms := range parseInit(trace.String()) {
			if old, ok := least[name]; !ok || ms < old {
				least[name] = ms
			}
		}
	}
	var work initWork
	for _, name := range slices.Sorted(maps.Keys(least)) {
		work.Total += least[name]
		if least[name] > work.Slowest {
			work.Slowest, work.Package = least[name], name
		}
	}
	return work, nil
}

// parseInit reads the lines "init PACKAGE @0.5 ms, 5.4 ms clock, ...".
func parseInit(trace string) map[string]float64 {
	work := map[string]float64{}
	for line := range strings.Lines(trace) {
		var name string
		var at, took float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
			work[name] = took
		}
	}
	return work
}
