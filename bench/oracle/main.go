//go:build linux && amd64

// Command oracle compares what the analysis says a shell script does with what it does: it
// runs scripts in a box under a tracer and reports each effect that is missing in the facts
// of a script whose facts are called exact.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == boxArgument {
		fail(serveBox())
		return
	}
	var o options
	flag.IntVar(&o.scripts, "n", 1000, "how many scripts to generate")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the generator")
	flag.StringVar(&o.shell, "shell", "bash", "the shell that runs the scripts: bash or dash")
	flag.StringVar(&o.file, "f", "", "read scripts from this file, one JSON string a line, instead of generating them")
	flag.StringVar(&o.judge, "judge", "", "a program that prints the facts of each script, instead of the analysis of this tree")
	flag.IntVar(&o.workers, "j", runtime.NumCPU(), "scripts that run at the same time")
	flag.IntVar(&o.show, "show", 20, "how many findings to show")
	facts := flag.Bool("facts", false, "be a judge: read scripts as JSON strings, one a line, and print the facts of each")
	flag.BoolVar(&o.trace, "trace", false, "print the facts and the effects of each script")
	flag.Parse()
	if *facts {
		fail(serveFacts(os.Stdin, os.Stdout))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := o.run(ctx)
	fail(err)
	if found {
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(2)
	}
}

type options struct {
	scripts, workers, show int
	seed                   uint64
	shell, file, judge     string
	trace                  bool
}

func (o options) run(ctx context.Context) (found bool, err error) {
	scripts, err := o.sources()
	if err != nil {
		return false, err
	}
	judge, err := newJudge(ctx, o.judge)
	if err != nil {
		return false, err
	}
	defer judge.Close()
	start := time.Now()
	r := report{}
	for result := range examine(ctx, scripts, o.shell, o.workers) {
		if result.err != nil {
			return false, result.err
		}
		facts, err := judge.Facts(result.Script)
		if err != nil {
			return false, err
		}
		missing := compare(facts, result.Effects)
		r.add(facts, result.Trace, missing)
		if o.trace {
			text, _ := json.MarshalIndent(map[string]any{"script": result.Script, "facts": facts, "effects": result.Effects, "missing": missing}, "", "  ")
			fmt.Println(string(text))
		}
	}
	r.print(os.Stdout, o.show, time.Since(start))
	return len(r.findings) > 0, ctx.Err()
}

// sources returns the scripts of the file, or generated ones.
func (o options) sources() ([]string, error) {
	if o.file != "" {
		return readScripts(o.file)
	}
	g, err := newGenerator(rand.New(rand.NewPCG(o.seed, 1)))
	if err != nil {
		return nil, err
	}
	scripts := make([]string, o.scripts)
	for i := range scripts {
		scripts[i] = g.Script()
	}
	return scripts, nil
}

func readScripts(path string) (scripts []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s string
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read %s: each line is a script as a JSON string: %w", path, err)
		}
		scripts = append(scripts, s)
	}
	return scripts, lines.Err()
}

// report collects the results.
type report struct {
	scripts, exact, effects, cut int
	findings                     []finding
}

// finding is a script with effects that its facts lack.
type finding struct {
	script  string
	missing []Effect
}

func (r *report) add(facts Facts, t Trace, missing []Effect) {
	r.scripts++
	r.effects += len(t.Effects)
	if t.Cut {
		r.cut++
	}
	if facts.Exact {
		r.exact++
	}
	if len(missing) > 0 {
		r.findings = append(r.findings, finding{t.Script, missing})
	}
}

func (r *report) print(out *os.File, show int, took time.Duration) {
	fmt.Fprintf(out, "%d scripts, %d (%.0f %%) with exact facts, %d effects, %d cut at the deadline, %d findings, %.0f s\n",
		r.scripts, r.exact, 100*float64(r.exact)/float64(max(1, r.scripts)), r.effects, r.cut, len(r.findings), took.Seconds())
	slices.SortFunc(r.findings, func(a, b finding) int { return len(a.script) - len(b.script) })
	for _, f := range r.findings[:min(show, len(r.findings))] {
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(f.script))
		for _, e := range f.missing {
			fmt.Fprintf(out, "\t%s\n", e)
		}
	}
}
