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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"agentctl.dev/agentctl/plugins/host"
)

// Program is a plugin program to check.
type Program struct {
	// Command is the program and its arguments.
	Command []string
	// Env is its whole environment; the default is none.
	Env []string
	// Dir is its working folder; the default is a temporary one.
	Dir string
	// Launch starts it; the default is Launch of this package. With a launcher
	// of its own, RunFixtures also checks that the launcher leaves no orphans.
	Launch func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)
	// Alive says whether a process runs, by the number it has where the program
	// runs; the default looks on this machine.
	Alive func(pid int) bool
}

// patience bounds each step of a check.
const patience = 15 * time.Second

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

func (p Program) open(t testing.TB, stderr *bytes.Buffer) (*host.Plugin, error) {
	t.Helper()
	if p.Dir == "" {
		p.Dir = t.TempDir()
	}
	launch := p.Launch
	if launch == nil {
		launch = Launch(p.Command, p.Env, p.Dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opts := host.Options{Name: p.Command[0], Launch: launch}
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

// Run checks what every plugin program must do.
func Run(t *testing.T, p Program) {
	t.Helper()
	t.Run("describes usable tools", func(t *testing.T) { describes(t, p.Start(t)) })
	t.Run("refuses an unknown tool", func(t *testing.T) {
		res := call(t, p.Start(t), host.CallRequest{Tool: "no-such-tool", Args: []byte(`{}`)})
		wantCode(t, res, "unknown_tool")
	})
	t.Run("refuses bad arguments", func(t *testing.T) { refusesArguments(t, p.Start(t)) })
	t.Run("answers several at once", func(t *testing.T) { answersMany(t, p.Start(t)) })
	t.Run("ends when it is closed", func(t *testing.T) { ends(t, p.Start(t)) })
}

func describes(t *testing.T, h *host.Plugin) {
	t.Helper()
	tools, err := h.Describe(t.Context())
	if err != nil {
		t.Fatalf("describe: %v", err)
	}
	for _, tool := range tools {
		if strings.TrimSpace(tool.Description) == "" {
			t.Errorf("tool %q has no description: a model cannot know what it is for", tool.Name)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(tool.Parameters, &s); err != nil {
			t.Errorf("tool %q: schema: %v", tool.Name, err)
			continue
		}
		if _, err := s.Resolve(nil); err != nil {
			t.Errorf("tool %q: schema: %v", tool.Name, err)
		}
		if s.Type != "object" {
			t.Errorf("tool %q: type of the schema = %q, want object", tool.Name, s.Type)
		}
	}
}

const unknownField = `{"no such field": 1}`

// closed says whether a tool's schema refuses fields it does not name.
func closed(tool host.ToolInfo) bool {
	var s struct {
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	return json.Unmarshal(tool.Parameters, &s) == nil && s.AdditionalProperties != nil && !*s.AdditionalProperties
}

// refusesArguments sends what no tool may act on; it is chosen so that a tool
// that does not look finds nothing to do either.
func refusesArguments(t *testing.T, h *host.Plugin) {
	t.Helper()
	for _, tool := range h.Tools() {
		for _, args := range []string{``, `{`, `[]`, `"text"`, `null`, `{} {}`, unknownField} {
			if args == unknownField && !closed(tool) {
				continue
			}
			res := call(t, h, host.CallRequest{Tool: tool.Name, Args: []byte(args)})
			if !res.IsError {
				t.Errorf("tool %q accepted the arguments %q: %+v", tool.Name, args, res)
			}
		}
	}
}

func answersMany(t *testing.T, h *host.Plugin) {
	t.Helper()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if res := call(t, h, host.CallRequest{Tool: "no-such-tool", Args: []byte(`{}`)}); res != nil && !res.IsError {
				t.Errorf("unknown tool accepted: %+v", res)
			}
		})
	}
	wg.Wait()
}

func ends(t *testing.T, h *host.Plugin) {
	t.Helper()
	start := time.Now()
	shut(t, h)
	select {
	case <-h.Exited():
	default:
		t.Error("it still runs after Close")
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("Close took %v", d)
	}
	shut(t, h) // again: harmless
	if _, err := h.Call(t.Context(), host.CallRequest{Tool: "x"}, nil); err == nil {
		t.Error("a call after Close was accepted")
	}
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
