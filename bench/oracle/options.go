//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"
)

type options struct {
	scripts, workers, show int
	seed                   uint64
	shell, file, judge     string
	trace, facts           bool
}

func parseOptions() (o options) {
	flag.IntVar(&o.scripts, "n", 1000, "how many scripts to generate")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the generator")
	flag.StringVar(&o.shell, "shell", "bash", "the shell that runs the scripts: bash or dash")
	flag.StringVar(&o.file, "f", "", "read scripts from this file, one JSON string a line, instead of generating them")
	flag.StringVar(&o.judge, "judge", "", "a program that prints the facts of each script, instead of the analysis of this tree")
	flag.BoolVar(&o.facts, "facts", false, "be such a program: read scripts as JSON strings, one a line, and print the facts of each")
	flag.IntVar(&o.workers, "j", runtime.NumCPU(), "scripts that run at the same time")
	flag.IntVar(&o.show, "show", 20, "how many findings to show")
	flag.BoolVar(&o.trace, "trace", false, "print the facts and the effects of each script")
	flag.Parse()
	return o
}

// run reports whether an effect was missing in exact facts.
func (o options) run(ctx context.Context) (found bool, err error) {
	if o.facts {
		return false, serveFacts(os.Stdin, os.Stdout)
	}
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
