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

	"agentctl.dev/agentctl/runner/model/provider"
)

// stub replaces the package of a provider in a program without it: the same
// function, which describes nothing.
const stub = `package %s

import "agentctl.dev/agentctl/runner/model"

func Provider() model.Provider { return model.Provider{} }
`

// remoteProviders are the names of the providers that have a server, which are the
// names of their packages.
func remoteProviders() (names []string) {
	for _, p := range provider.All() {
		if p.Remote() {
			names = append(names, string(p.Name))
		}
	}
	return names
}

// measureProviders builds agentctl with and without each provider, and reports what
// it adds to the program and to its start.
func measureProviders(ctx context.Context, b *bench, reps int) error {
	whole, err := buildAgentctl(ctx, b, "whole")
	if err != nil {
		return err
	}
	size, err := programSize(whole)
	if err != nil {
		return err
	}
	b.report.alone("agentctl with every provider", "MB", size, nil)
	for _, name := range remoteProviders() {
		overlay, err := overlayWithout(name, b.root, b.dir)
		if err != nil {
			return err
		}
		without, err := buildAgentctl(ctx, b, "without-"+name, "-overlay", overlay)
		if err != nil {
			return err
		}
		rest, err := programSize(without)
		if err != nil {
			return err
		}
		b.report.alone(name+" adds to it", "MB", size-rest, nil)
		added, err := startAdded(ctx, whole, without, reps)
		if err != nil {
			return err
		}
		b.report.alone(name+" adds to the start p50", "ms", added, atMost(5))
		fmt.Fprint(b.progress, ".")
	}
	return nil
}

// overlayWithout writes a build overlay into a folder in which the stub is the whole
// package of a provider.
func overlayWithout(name, root, dir string) (overlay string, err error) {
	pkg, err := filepath.Abs(filepath.Join(root, "runner", "model", name))
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no provider in %s: name the folder of the repository with -root (%w)", pkg, err)
	}
	empty := filepath.Join(dir, name+".go")
	if err := os.WriteFile(empty, fmt.Appendf(nil, stub, name), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(pkg, "stub.go"): empty}
	for _, f := range files {
		replace[f] = ""
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, name+".json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// buildAgentctl builds agentctl as make build does.
func buildAgentctl(ctx context.Context, b *bench, name string, flags ...string) (program string, err error) {
	program = filepath.Join(b.dir, "agentctl-"+name)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/agentctl")...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
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
