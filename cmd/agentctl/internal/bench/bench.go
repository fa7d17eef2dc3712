// Command bench measures agentctl beside a floor: plain net/http and os/exec having the same conversation with the same server.
//
// Floor and agentctl run interleaved, and each ratio is taken within one
// repetition, because neighbours on a machine move milliseconds by a factor.
// The server takes the times, so neither side measures itself, and it counts
// that every command really ran.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// options of one invocation.
type options struct {
	agentctl string
	reps     int
	turns    int
	memory   int
	dir      string
	floor    bool // only the floor
	journal  bool
	json     bool
	check    bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.agentctl, "agentctl", "bin/agentctl", "program to measure")
	f.IntVar(&o.reps, "reps", 15, "interleaved repetitions")
	f.IntVar(&o.turns, "turns", 20, "tool turns of a run")
	f.IntVar(&o.memory, "memory-reps", 3, "further repetitions in which memory is sampled, which disturbs the times")
	f.StringVar(&o.dir, "dir", "", "folder for state and workspaces, on the disk to measure (default: a temporary one)")
	f.BoolVar(&o.floor, "floor-only", false, "measure the floor alone")
	f.BoolVar(&o.journal, "journal", true, "measure the journal by its own benchmark")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the table")
	f.BoolVar(&o.check, "check", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.reps < 1 || o.turns < 2 || o.memory < 0 {
		return o, errors.New("want at least one repetition of two turns")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == floorVerb {
		return runFloor(ctx, args[1:], stdout)
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if !o.floor {
		if o.agentctl, err = filepath.Abs(o.agentctl); err != nil {
			return err
		}
		if _, err := os.Stat(o.agentctl); err != nil {
			return fmt.Errorf("%w; make build makes it, -floor-only measures without it", err)
		}
	}
	dir, err := os.MkdirTemp(o.dir, "agentctl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report, err := measure(ctx, o, dir, stderr)
	if err != nil {
		return err
	}
	if o.json {
		err = report.writeJSON(stdout)
	} else {
		err = report.writeTable(stdout)
	}
	if err == nil && o.check {
		err = report.missed()
	}
	return err
}

// measure runs everything and collects the figures.
func measure(ctx context.Context, o options, dir string, progress io.Writer) (*report, error) {
	sides, err := sidesOf(o)
	if err != nil {
		return nil, err
	}
	r := &report{Turns: o.turns, Repetitions: o.reps, samples: map[string][]sample{}}
	if r.FsyncP50, err = fsyncP50(dir); err != nil {
		return nil, err
	}
	becomeReaper()
	// The first repetition warms the page cache and is thrown away.
	for rep := -1; rep < o.reps; rep++ {
		for i := range sides {
			// Change who goes first: a CPU that has just worked is faster.
			s := sides[(i+max(rep, 0))%len(sides)]
			got, err := s.once(ctx, o, dir, false)
			if err != nil {
				return nil, fmt.Errorf("%s, repetition %d: %w", s.name, rep+1, err)
			}
			if rep >= 0 {
				r.samples[s.name] = append(r.samples[s.name], got)
			}
		}
		fmt.Fprintf(progress, "\rrepetition %d of %d", rep+1, o.reps)
	}
	fmt.Fprintln(progress)
	for range o.memory {
		for _, s := range sides {
			got, err := s.once(ctx, o, dir, true)
			if err != nil {
				return nil, fmt.Errorf("%s, memory: %w", s.name, err)
			}
			r.memory = append(r.memory, memorySample{side: s.name, treePeak: got.Memory})
		}
	}
	if !o.floor {
		if r.Init, err = measureInit(ctx, o.agentctl); err != nil {
			fmt.Fprintln(progress, "start not measured:", err)
		}
	}
	if o.journal && !o.floor {
		if r.JournalPerSecond, err = journalRate(ctx); err != nil {
			fmt.Fprintln(progress, "journal not measured:", err)
		}
	}
	r.summarise()
	return r, nil
}

// journalRate asks the journal's own benchmark: appends that are not waited for.
func journalRate(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkAppend$", "agentctl.dev/agentctl/runner/journal")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return parseJournal(string(out))
}

func parseJournal(out string) (float64, error) {
	for line := range strings.Lines(out) {
		var name string
		var n int
		var ns float64
		if _, err := fmt.Sscanf(line, "%s %d %f ns/op", &name, &n, &ns); err == nil && strings.HasPrefix(name, "BenchmarkAppend") && ns > 0 {
			return 1e9 / ns, nil
		}
	}
	return 0, fmt.Errorf("no BenchmarkAppend in %q", out)
}
