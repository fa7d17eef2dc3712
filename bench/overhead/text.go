package main

import "context"

// essay is the conversation of a model that writes before it acts.
var essay = talk{turns: 3, chunks: 2000, text: 200_000}

// measureText has conversations in which each answer is mostly text. The figure
// spans from the first byte of an answer to the next request: a program that
// reads slowly pays whether it falls behind or keeps up.
func measureText(ctx context.Context, b *bench, reps int) error {
	all, err := alternate(b, 1, reps, func(s side) (sample, error) { return b.converse(ctx, s, essay, false) })
	if err != nil {
		return err
	}
	compare(b.report, "200 KB in 2,000 chunks and a command p50", "ms", all,
		func(s sample) float64 { return ms(percentile(s.Spans, 50)) }, atMostFloor(2).slack(b.report.slowDisk()))
	// The server takes most of the time above to send; what is left to do then is the reader's alone.
	compare(b.report, "of which after the last byte p50", "ms", all,
		func(s sample) float64 { return ms(percentile(s.Overheads, 50)) }, nil)
	// With the start and the end of the program, which outweigh three turns.
	compare(b.report, "CPU of a run of three such turns", "s", all,
		func(s sample) float64 { return s.CPU.Seconds() }, nil)
	return nil
}
