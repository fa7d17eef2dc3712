package main

import (
	"context"
	"fmt"
)

// measureTurns has the plain conversation, first for the times, then for memory.
func measureTurns(ctx context.Context, b *bench, reps int) error {
	t := talk{turns: b.turns}
	all, err := alternate(b, 1, reps, func(s side) (sample, error) { return b.converse(ctx, s, t, false) })
	if err != nil {
		return err
	}
	weighed, err := alternate(b, 0, b.memory, func(s side) (sample, error) { return b.converse(ctx, s, t, true) })
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	b.report.turns(b.turns, all)
	if b.memory > 0 {
		compare(b.report, "peak RSS of the process tree", "MB", weighed, func(s sample) float64 { return megabytes(s.Memory.RSS) }, atMost(55))
		compare(b.report, "peak PSS of the process tree", "MB", weighed, func(s sample) float64 { return megabytes(s.Memory.PSS) }, nil)
		tools := medianOf(each(weighed.ours, func(s sample) float64 { return megabytes(s.Memory.Tools) }))
		b.report.add(figure{Name: "peak RSS of the shipped tools alone", Unit: "MB", Agentctl: tools, Goal: atMost(25)})
	}
	return nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// turns adds the figures of the plain conversation.
func (r *report) turns(turns int, all both[sample]) {
	slow := r.slowDisk()
	overhead := func(p, from int) func(sample) float64 {
		return func(s sample) float64 { return ms(percentile(s.Overheads[from:], p)) }
	}
	compare(r, fmt.Sprintf("wall of %d turns", turns), "ms", all, sample.wall, atMostFloor(1.75).slack(slow*float64(turns)))
	compare(r, "overhead per turn p50", "ms", all, overhead(50, 0), atMostFloor(2).slack(slow))
	compare(r, "overhead per turn p95, from turn 2", "ms", all, overhead(95, 1), atMost(6).slack(slow))
	compare(r, "overhead of turn 1", "ms", all, func(s sample) float64 { return ms(s.Overheads[0]) }, atMost(12).slack(slow))
	compare(r, "cold start to first request", "ms", all, sample.cold, atMost(15))
	cpu := atMostFloor(2)
	if turns != defaultTurns {
		cpu = nil // the goal is for a run of that length
	}
	compare(r, "CPU of a run", "s", all, func(s sample) float64 { return s.CPU.Seconds() }, cpu)
}

func (s sample) wall() float64 { return ms(s.Wall) }
func (s sample) cold() float64 { return ms(s.Cold) }
