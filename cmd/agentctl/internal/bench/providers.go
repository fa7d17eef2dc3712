package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// provider is a package that speaks to a maker of models.
type provider struct {
	name string
	// stub is what stands in its place in a program that does not hold it: the
	// same function, which describes nothing.
	stub string
}

func providers() []provider {
	const stub = `package %s

import "agentctl.dev/agentctl/runner/model"

func Provider() model.Provider { return model.Provider{} }
`
	var all []provider
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		all = append(all, provider{name, fmt.Sprintf(stub, name)})
	}
	return all
}

// measureProviders builds agentctl with and without each provider, and says what
// it adds to the program and to its start.
func measureProviders(ctx context.Context, b *bench, reps int) error {
	whole, err := buildAgentctl(ctx, b.dir, "whole", nil)
	if err != nil {
		return err
	}
	size, err := programSize(whole)
	if err != nil {
		return err
	}
	b.report.alone("agentctl with every provider", "MB", size, nil)
	for _, p := range providers() {
		overlay, err := p.absent(b.dir)
		if err != nil {
			return err
		}
		without, err := buildAgentctl(ctx, b.dir, "without-"+p.name, []string{"-overlay", overlay})
		if err != nil {
			return err
		}
		rest, err := programSize(without)
		if err != nil {
			return err
		}
		b.report.alone(p.name+" adds to it", "MB", size-rest, nil)
		added, err := startAdded(ctx, whole, without, reps)
		if err != nil {
			return err
		}
		b.report.alone(p.name+" adds to the start p50", "ms", added, atMost(5))
		fmt.Fprint(b.progress, ".")
	}
	return nil
}

// absent writes a build overlay in which the stub is the whole package.
func (p provider) absent(dir string) (overlay string, err error) {
	root, err := filepath.Abs(filepath.Join("runner", "model", p.name))
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no provider in %s: run it from the root of the repository (%w)", root, err)
	}
	stub := filepath.Join(dir, p.name+".go")
	if err := os.WriteFile(stub, []byte(p.stub), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(root, "stub.go"): stub}
	for _, f := range files {
		replace[f] = ""
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, p.name+".json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// buildAgentctl builds agentctl as make build does.
func buildAgentctl(ctx context.Context, dir, name string, flags []string) (program string, err error) {
	program = filepath.Join(dir, "agentctl-"+name)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/agentctl")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build agentctl (%s): %w\n%s", name, err, out)
	}
	return program, nil
}

func programSize(file string) (float64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / 1e6, nil
}

// startAdded is the median of what one program takes longer than the other to
// start and end; the two take turns.
func startAdded(ctx context.Context, whole, without string, reps int) (float64, error) {
	var added []float64
	for rep := range reps + 1 {
		took := map[string]time.Duration{}
		order := []string{whole, without}
		if rep%2 == 1 {
			slices.Reverse(order)
		}
		for _, program := range order {
			begin := time.Now()
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := exec.CommandContext(ctx, program, "version").Run()
			cancel()
			if err != nil {
				return 0, fmt.Errorf("%s version: %w", program, err)
			}
			took[program] = time.Since(begin)
		}
		if rep > 0 { // the first one reads the programs
			added = append(added, ms(took[whole]-took[without]))
		}
	}
	return percentile(added, 50), nil
}
