package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"agentctl.dev/agentctl/runner/policy/shell"
)

// rounds of the measurement of times; each figure is the median.
const rounds = 5

// measureTimes reports what the facts of commands that people have written cost beside
// parsing alone, and what a decision costs.
func measureTimes(ctx context.Context, b *bench) error {
	commands, err := readCommands(b.corpus("third-party/nl2bash.txt"))
	if err != nil {
		return err
	}
	var floors, times, ratios []float64
	for range rounds {
		floor := eachMicroseconds(commands, func(c string) {
			_, _ = syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(c), "") // what does not parse costs time, too
		})
		ours := eachMicroseconds(commands, func(c string) { shell.Parse(c, "/work") })
		floors, times, ratios = append(floors, floor), append(times, ours), append(ratios, ours/floor)
	}
	b.report.add(&figure{Name: "facts of a command, mean, CPU; floor: parsing", Unit: "µs", Value: median(times), Floor: median(floors), Ratio: median(ratios), Goal: atMost(60)})
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.report.note("load of this machine %.14s; ratios hold where it is busy", load)
	}
	return b.decisionTimes(ctx)
}

// eachMicroseconds is the mean time of the processor that a function takes for a command:
// unlike the time that passes, it depends little on what else the machine does.
func eachMicroseconds(commands []string, do func(string)) float64 {
	begin := processorTime()
	for _, c := range commands {
		do(c)
	}
	return float64((processorTime() - begin).Nanoseconds()) / 1000 / float64(len(commands))
}

// processorTime is what this process has used so far, its garbage collector included.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // which it cannot be for this process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// decisionTimes asks the Go benchmark of decisions that is next to the engine. It repeats
// short measurements and takes the fastest: on a busy machine the others hold the time of
// other programs.
func (b *bench) decisionTimes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkDecide$", "-benchtime=3ms", "-count=30", "./runner/policy")
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("measure decisions: %w\n%s", err, out)
	}
	times := benchmarkTimes(string(out))
	for _, d := range []struct {
		kind, name string
		goal       float64
	}{{"plain", "decision with 1,000 rules, plain; floor: 10 rules", 50}, {"shell", "the same, a shell command", 200}} {
		ours, floor := times["rules=1000/"+d.kind], times["rules=10/"+d.kind]
		if len(ours) == 0 || len(floor) == 0 {
			return fmt.Errorf("no times of %s decisions in the output of go test:\n%s", d.kind, out)
		}
		b.report.add(&figure{Name: d.name, Unit: "µs", Value: slices.Min(ours), Floor: slices.Min(floor), Ratio: slices.Min(ours) / slices.Min(floor), Goal: atMost(d.goal)})
	}
	return nil
}

// benchmarkTimes reads lines "BenchmarkDecide/rules=10/plain-2  1000  2500 ns/op ..." of
// go test, in microseconds.
func benchmarkTimes(out string) map[string][]float64 {
	found := map[string][]float64{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "ns/op" {
			continue
		}
		name, ok := strings.CutPrefix(fields[0], "BenchmarkDecide/")
		ns, err := strconv.ParseFloat(fields[2], 64)
		if !ok || err != nil {
			continue
		}
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of processors
		}
		found[name] = append(found[name], ns/1000)
	}
	return found
}
