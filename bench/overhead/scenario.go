package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one way to put both sides to work, with the figures it gives.
type scenario struct {
	name, about string
	// reps are the interleaved repetitions when nobody asks for more.
	reps int
	// ours says that the floor has nothing to compare with.
	ours    bool
	measure func(ctx context.Context, b *bench, reps int) error
}

// scenarios stand in the order in which they are measured: the one that drops
// the page cache stands last, so that nobody else pays for it.
func scenarios() []scenario {
	return []scenario{
		{name: "turns", about: "one run of twenty commands: times, CPU and memory", reps: 15, measure: measureTurns},
		{name: "text", about: "200 KB of text in 2,000 chunks before each command", reps: 5, measure: measureText},
		{name: "long", about: "runs of 300 and 1,000 commands: what a turn costs at both ends", reps: 3, measure: measureLong},
		{name: "crowd", about: "eight processes at once", reps: 5, measure: measureCrowd},
		{name: "many", about: "1,000 conversations at once in one process", reps: 2, measure: measureMany},
		{name: "flood", about: "a command that prints 200 MB: what the runner grows by", reps: 3, ours: true, measure: measureFlood},
		{name: "start", about: "what agentctl does before its main begins", reps: 9, ours: true, measure: measureStart},
		{name: "control", about: "agentd: its start, verbs that ask it, 1,000 objects and 1,000 runs", reps: 5, ours: true, measure: measureControl},
		{name: "providers", about: "what each provider of models adds to the program and its start", reps: 21, ours: true, measure: measureProviders},
		{name: "parts", about: "Go benchmarks of single parts", reps: 1, ours: true, measure: measureParts(parts(), 300*time.Millisecond)},
		{name: "held", about: "Go benchmarks of sandboxes and containers", reps: 1, ours: true, measure: measureParts(contained(), time.Second)},
		{name: "grep", about: "searches of 100 MB, compared with ripgrep if it is installed", reps: 5, ours: true, measure: measureGrep},
		{name: "cold", about: "the first run after the page cache was dropped", reps: 5, measure: measureCold},
	}
}

func scenarioList() string {
	var b strings.Builder
	for _, s := range scenarios() {
		fmt.Fprintf(&b, "  %-9s %s\n", s.name, s.about)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// selectScenarios finds those that are named, in the order of the table.
func selectScenarios(names string) ([]scenario, error) {
	all := scenarios()
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(s scenario) bool { return s.name == name }) {
			return nil, fmt.Errorf("no scenario %q; there are:\n%s", name, scenarioList())
		}
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !slices.Contains(wanted, s.name) }), nil
}
