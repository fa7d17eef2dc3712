package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
// floor is a copy of this program: pages of a file that runs stay in memory.
func sidesOf(o options, dir string) ([]side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	floor := filepath.Join(dir, "floor")
	if err := copyProgram(floor, self); err != nil {
		return nil, fmt.Errorf("copy the floor: %w", err)
	}
	sides := []side{{
		name:   sideFloor,
		argv:   func(url string, f folders) []string { return []string{floor, floorVerb, url, f.workspace} },
		verify: func([]byte, int) error { return nil },
		files:  []string{floor},
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
				o.agentctl, "run", "-f", f.manifests, "-p", benchPrompt, "--workspace", f.workspace,
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

func copyProgram(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700) //nolint:gosec // G302: it is a program
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the copy has failed already
		return err
	}
	return out.Close()
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
