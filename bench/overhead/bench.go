// Command overhead compares agentctl with a floor: plain net/http and os/exec having the same conversation with the same server.
//
// Floor and agentctl run interleaved, and each ratio is taken within one
// repetition, because neighbours on a machine move milliseconds by a factor.
// The server takes the times, so neither side measures itself, and it counts
// that every command really ran.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// defaultTurns is the length of the plain conversation, for which the goals hold.
const defaultTurns = 20

// options of one invocation.
type options struct {
	root          string // folder of the repository
	agentctl      string
	only          []scenario
	reps          int // 0: what each scenario thinks best
	turns         int
	conversations int
	memory        int
	dir           string
	floor         bool // only the floor
	json          bool
	check         bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.root, "root", "..", "folder of the repository, whose packages are measured and built")
	f.StringVar(&o.agentctl, "agentctl", "", "program to measure (default: bin/agentctl of the repository)")
	only := f.String("only", "", "scenarios to measure, separated by commas (default: all):\n"+scenarioList())
	f.IntVar(&o.reps, "reps", 0, "interleaved repetitions of every scenario (default: each scenario's own)")
	f.IntVar(&o.turns, "turns", defaultTurns, "tool turns of a run")
	f.IntVar(&o.conversations, "conversations", 1000, "conversations held at once in one process")
	f.IntVar(&o.memory, "memory-reps", 3, "further repetitions in which memory is sampled, which disturbs the times")
	f.StringVar(&o.dir, "dir", "", "folder for state and workspaces, on the disk to measure (default: a temporary one)")
	f.BoolVar(&o.floor, "floor-only", false, "measure the floor alone")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the table")
	f.BoolVar(&o.check, "check", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.reps < 0 || o.turns < 2 || o.memory < 0 || o.conversations < 1 {
		return o, errors.New("want no less than two turns, one conversation and no negative number of repetitions")
	}
	var err error
	o.only, err = selectScenarios(*only)
	return o, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if !o.floor {
		if o.agentctl, err = filepath.Abs(cmp.Or(o.agentctl, filepath.Join(o.root, "bin", "agentctl"))); err != nil {
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

// bench is one invocation at work.
type bench struct {
	options
	dir      string
	sides    []side
	report   *report
	progress io.Writer
}

// measure runs the chosen scenarios and collects their figures.
func measure(ctx context.Context, o options, dir string, progress io.Writer) (*report, error) {
	sides, err := sidesOf(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, dir: dir, sides: sides, report: &report{}, progress: progress}
	if b.report.FsyncP50, err = fsyncP50(dir); err != nil {
		return nil, err
	}
	b.report.begin("machine", 1)
	b.report.note("%s", machine())
	becomeReaper()
	for _, s := range o.only {
		if o.floor && s.ours {
			continue
		}
		reps := s.reps
		if o.reps > 0 {
			reps = o.reps
		}
		begin := time.Now()
		b.report.begin(s.name, reps)
		fmt.Fprintf(progress, "%s: ", s.name)
		if err := s.measure(ctx, b, reps); err != nil {
			fmt.Fprintln(progress)
			return nil, fmt.Errorf("scenario %s: %w", s.name, err)
		}
		fmt.Fprintf(progress, " %.1f s\n", time.Since(begin).Seconds())
	}
	fsync := ms(b.report.FsyncP50)
	b.report.begin("disk", 1)
	b.report.add(figure{Name: "fsync of this disk p50", Unit: "ms", Floor: &fsync})
	return b.report, nil
}

// both are the samples of the two sides, repetition by repetition.
type both[S any] struct{ floor, ours []S }

// alternate measures every side reps times, after some rounds that warm the page
// cache and are thrown away.
func alternate[S any](b *bench, warm, reps int, measure func(side) (S, error)) (both[S], error) {
	var all both[S]
	for rep := -warm; rep < reps; rep++ {
		for i := range b.sides {
			// Change who goes first: a CPU that has just worked is faster.
			s := b.sides[(i+max(rep, 0))%len(b.sides)]
			got, err := measure(s)
			if err != nil {
				return all, fmt.Errorf("%s, repetition %d: %w", s.name, rep+1, err)
			}
			switch {
			case rep < 0:
			case s.name == sideFloor:
				all.floor = append(all.floor, got)
			default:
				all.ours = append(all.ours, got)
			}
		}
		fmt.Fprint(b.progress, ".")
	}
	return all, nil
}

// converse has one conversation with a side in fresh folders and looks for
// processes that were left behind.
func (b *bench) converse(ctx context.Context, s side, t talk, memory bool) (sample, error) {
	j, err := s.prepare(ctx, b.dir, t)
	if err != nil {
		return sample{}, err
	}
	defer j.close()
	got, err := j.run(ctx, memory)
	if err != nil {
		return got, err
	}
	return got, leftBehind()
}

func leftBehind() error {
	if left := survivors(); len(left) > 0 {
		return fmt.Errorf("%d processes outlived the run: %s", len(left), strings.Join(left, ", "))
	}
	return nil
}
