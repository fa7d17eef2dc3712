package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const benchPrompt = "Append the numbers from one up, one command each."

// The names of the two sides.
const (
	sideFloor    = "floor"
	sideAgentctl = "agentctl"
)

// manifest is what agentctl runs: openai, bash and ten rules. SERVER is replaced.
//
//go:embed manifest.yaml
var manifest string

// runTimeout bounds one run of either side.
const runTimeout = 2 * time.Minute

// sample is one run.
type sample struct {
	// Wall is spawn → exit, Cold is spawn → arrival of the first request.
	Wall, Cold time.Duration
	// Overheads are, per turn, the end of an answer → the next request.
	Overheads []time.Duration
	// CPU is user and system time of the process and all it waited for.
	CPU time.Duration
	// Memory is set when it was sampled.
	Memory treePeak
}

// side is a program that can have the conversation.
type side struct {
	name string
	argv func(url, manifests, workspace, state string) []string
	// verify reads what the program printed.
	verify func(stdout []byte, turns int) error
}

func sidesOf(o options) ([]side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	sides := []side{{
		name:   sideFloor,
		argv:   func(url, _, workspace, _ string) []string { return []string{self, floorVerb, url, workspace} },
		verify: func([]byte, int) error { return nil },
	}}
	if o.floor {
		return sides, nil
	}
	return append(sides, side{
		name: sideAgentctl,
		argv: func(_, manifests, workspace, state string) []string {
			return []string{
				o.agentctl, "run", "-f", manifests, "-p", benchPrompt, "--workspace", workspace,
				"--state", state, "--allow-unsandboxed", "--approve", "all", "-o", "json",
			}
		},
		verify: verifyResult,
	}), nil
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

// once has one conversation in fresh folders.
func (s side) once(ctx context.Context, o options, dir string, memory bool) (sample, error) {
	var got sample
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	srv, err := listen(ctx, o.turns)
	if err != nil {
		return got, err
	}
	defer srv.close()
	root, err := os.MkdirTemp(dir, s.name+"-")
	if err != nil {
		return got, err
	}
	defer os.RemoveAll(root)
	folder := func(name string) string { return filepath.Join(root, name) }
	for _, name := range []string{"manifests", "workspace", "state", "home"} {
		if err := os.Mkdir(folder(name), 0o700); err != nil {
			return got, err
		}
	}
	text := strings.ReplaceAll(manifest, "SERVER", srv.url)
	if err := os.WriteFile(filepath.Join(folder("manifests"), "bench.yaml"), []byte(text), 0o600); err != nil {
		return got, err
	}

	argv := s.argv(srv.url, folder("manifests"), folder("workspace"), folder("state"))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir = root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder("home"), "BENCH_API_KEY=none"}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return got, err
	}
	stop := func() treePeak { return treePeak{} }
	if memory {
		stop = watchTree(cmd.Process.Pid)
	}
	err = cmd.Wait()
	got.Wall = time.Since(begin)
	got.Memory = stop()
	if err != nil {
		return got, fmt.Errorf("%w\n%s%s", err, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	got.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	seen, err := srv.result()
	if err == nil {
		err = s.verify(stdout.Bytes(), o.turns)
	}
	if err != nil {
		return got, fmt.Errorf("%w\n%s", err, tail(stderr.Bytes()))
	}
	if left := survivors(); len(left) > 0 {
		return got, fmt.Errorf("%d processes outlived the run: %v", len(left), left)
	}
	got.Cold = seen.first.Sub(begin)
	got.Overheads = seen.overheads
	return got, nil
}

// tail keeps the end of an output for an error message.
func tail(text []byte) []byte {
	const most = 2000
	return text[max(0, len(text)-most):]
}
