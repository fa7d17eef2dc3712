package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
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
	b.report.add(&figure{Name: "facts of a command, mean; floor: parsing", Unit: "µs", Value: median(times), Floor: median(floors), Ratio: median(ratios), Goal: atMost(60)})
	return b.decisionTimes(ctx)
}

// eachMicroseconds is the mean time of a function for a command.
func eachMicroseconds(commands []string, do func(string)) float64 {
	begin := time.Now()
	for _, c := range commands {
		do(c)
	}
	return float64(time.Since(begin).Nanoseconds()) / 1000 / float64(len(commands))
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// decisionTimes asks the Go benchmark of decisions that is next to the engine.
func (b *bench) decisionTimes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkDecide$/^rules=1000$", "-benchtime=300ms", "-count=3", "./runner/policy")
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("measure decisions: %w\n%s", err, out)
	}
	found := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		var n int
		var ns float64
		name, rest, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || !strings.HasPrefix(name, "BenchmarkDecide/rules=1000/") {
			continue
		}
		if _, err := fmt.Sscan(rest, &n, &ns); err == nil {
			kind, _, _ := strings.Cut(strings.TrimPrefix(name, "BenchmarkDecide/rules=1000/"), "-")
			kind = strings.TrimSpace(kind)
			found[kind] = append(found[kind], ns/1000)
		}
	}
	plain, shells := found["plain"], found["shell"]
	if err := cmp.Or(missing("plain", plain), missing("shell", shells)); err != nil {
		return fmt.Errorf("%w in the output of go test:\n%s", err, out)
	}
	b.report.add(&figure{Name: "decision with 1,000 rules, plain", Unit: "µs", Value: median(plain), Goal: atMost(50)})
	b.report.add(&figure{Name: "decision with 1,000 rules, a shell command", Unit: "µs", Value: median(shells), Goal: atMost(200)})
	return nil
}

func missing(name string, values []float64) error {
	if len(values) == 0 {
		return errors.New("no BenchmarkDecide/rules=1000/" + name)
	}
	return nil
}
