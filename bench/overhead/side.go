package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"agentctl.dev/agentctl/bench/overhead/floor"
)

// The names of the two sides.
const (
	sideFloor    = "floor"
	sideAgentctl = "agentctl"
)

// manifest is what agentctl runs: openai, bash and ten rules. SERVER is replaced.
//
//go:embed manifest.yaml
var manifest string

// side is a program that can have the conversation.
type side struct {
	name string
	argv func(url string, f folders) []string
	// verify reads what the program printed.
	verify func(stdout []byte, turns int) error
	// files are what is read from disk to start it.
	files []string
}

// sidesOf returns the floor and, unless it is measured alone, agentctl. The
// floor is a program of its own: it must not carry what this one is made of.
func sidesOf(ctx context.Context, o options, dir string) ([]side, error) {
	program, err := buildPart(ctx, dir, "floor", "floor/program")
	if err != nil {
		return nil, err
	}
	sides := []side{{
		name:   sideFloor,
		argv:   func(url string, f folders) []string { return []string{program, url, f.workspace} },
		verify: func([]byte, int) error { return nil },
		files:  []string{program},
	}}
	if o.floor {
		return sides, nil
	}
	// Beside its helper it has to run everything in a sandbox, or fail. An older one
	// without is measured as it is.
	files, boxed := []string{o.agentctl, o.agentctl + "-tools"}, false
	if _, err := os.Stat(o.agentctl + "-sandbox"); err == nil {
		files, boxed = append(files, o.agentctl+"-sandbox"), true
	}
	return append(sides, side{
		name: sideAgentctl,
		argv: func(_ string, f folders) []string {
			argv := []string{
				o.agentctl, "run", "-f", f.manifests, "-p", floor.Prompt, "--workspace", f.workspace,
				"--state", f.state, "--approve", "all", "-o", "json",
			}
			if !boxed {
				argv = append(argv, "--allow-unsandboxed")
			}
			return argv
		},
		verify: verifyResult,
		files:  files,
	}), nil
}

// buildPart builds a program of the benchmark as the measured ones are built, the copy
// at the end of .ci/build included.
func buildPart(ctx context.Context, dir, name, folder string) (program string, err error) {
	program = filepath.Join(dir, name)
	linked := program + ".linked"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", linked, modulePath+"/bench/overhead/"+folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program %s: %w\n%s", name, err, tail(out))
	}
	if out, err := exec.CommandContext(ctx, "cp", linked, program).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy the program %s: %w\n%s", name, err, tail(out))
	}
	return program, nil
}

// verifyResult checks agentctl's own account of the run.
func verifyResult(stdout []byte, turns int) error {
	var res struct {
		Reason    string `json:"reason"`
		ToolCalls []struct {
			State    string `json:"state"`
			Decision string `json:"decision"`
		} `json:"toolCalls"`
		ChangedFiles []struct {
			Path string `json:"path"`
		} `json:"changedFiles"`
	}
	if err := json.Unmarshal(stdout, &res); err != nil {
		return fmt.Errorf("result is not JSON: %w", err)
	}
	if res.Reason != "Completed" || len(res.ToolCalls) != turns {
		return fmt.Errorf("reason %s after %d calls, want Completed after %d", res.Reason, len(res.ToolCalls), turns)
	}
	for i, c := range res.ToolCalls {
		if c.State != "completed" || c.Decision == "" {
			return fmt.Errorf("call %d: state %q, decision %q", i+1, c.State, c.Decision)
		}
	}
	if len(res.ChangedFiles) != 1 || res.ChangedFiles[0].Path != "turns.txt" {
		return fmt.Errorf("changed files %v, want turns.txt alone", res.ChangedFiles)
	}
	return nil
}
