// Package sdktest checks that a plugin program keeps the tool protocol.
//
// Run checks any program, in whatever language. RunFixtures goes further and
// needs a program that serves the tools of Fixtures, or the same in its own
// language: it is how an SDK proves itself.
package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/host/conformance"
)

// Program is a plugin program to check.
type Program struct {
	// Command is the program and its arguments.
	Command []string
	// Env is its whole environment; the default is empty.
	Env []string
	// Dir is its working folder; the default is a temporary one.
	Dir string
	// Launch starts it; the default is Launch of this package. With a launcher
	// of its own, RunFixtures also checks that the launcher leaves no orphans.
	Launch func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)
	// Alive reports whether a process runs, by the id it has where the program runs; the
	// default looks on this machine.
	Alive func(pid int) bool
}

// patience bounds each step of a check.
const patience = time.Minute

// Start starts the program for a test and closes it at the test's end.
func (p Program) Start(t testing.TB) *host.Plugin {
	t.Helper()
	h, err := p.open(t, nil)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { shut(t, h) })
	return h
}

func (p Program) launch() func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	if p.Launch != nil {
		return p.Launch
	}
	return Launch(p.Command, p.Env, p.Dir)
}

func (p Program) open(t testing.TB, stderr *bytes.Buffer) (*host.Plugin, error) {
	t.Helper()
	if p.Dir == "" {
		p.Dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opts := host.Options{Name: p.Command[0], Launch: p.launch()}
	if stderr != nil {
		opts.Stderr = stderr
	}
	return host.Start(ctx, opts)
}

func shut(t testing.TB, h *host.Plugin) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Run checks what every plugin program must do. What the program offers no way to
// try is skipped.
func Run(t *testing.T, p Program) {
	t.Helper()
	if p.Dir == "" {
		p.Dir = t.TempDir()
	}
	report := conformance.Run(t.Context(), conformance.Options{
		Name: p.Command[0], Launch: p.launch(), Env: p.Env, Workspace: p.Dir, Schema: resolves,
	})
	for _, c := range report.Checks {
		t.Run(c.Name, func(t *testing.T) {
			switch c.Outcome {
			case conformance.Failed:
				t.Errorf("%s\nexpected: %s\nto mend: %s", c.Problem, c.Promise, c.Mend)
			case conformance.Skipped:
				t.Skip(c.Problem)
			case conformance.Passed:
			}
		})
	}
}

// resolves returns what is wrong with a JSON Schema.
func resolves(schema []byte) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	_, err := s.Resolve(nil)
	return err
}

// call makes a call that must be answered with a result.
func call(t testing.TB, h *host.Plugin, req host.CallRequest) *host.CallResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := h.Call(ctx, req, nil)
	if err != nil {
		t.Errorf("call %s %.80s: %v", req.Tool, req.Args, err)
		return &host.CallResult{}
	}
	return res
}

func wantCode(t testing.TB, res *host.CallResult, code string) {
	t.Helper()
	if !res.IsError || res.Code != code {
		t.Errorf("result = %+v, want an error with code %q", res, code)
	}
}
