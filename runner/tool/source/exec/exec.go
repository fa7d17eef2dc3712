// Package exec is the source of programs of this host that are started for each call.
package exec

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
)

// Kind describes spec.source.exec.
func Kind() tool.Kind {
	return tool.Kind{Name: "exec", Facts: facts, Open: func(p *tool.Pool) tool.Source { return &source{p} }}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	return tool.Facts{Command: tool.Command(s.Source.Exec.Command), Receives: true}, nil
}

type source struct{ pool *tool.Pool }

// Start implements tool.Source: a program is started by its calls.
func (s *source) Start(context.Context, *tool.Definition) {}

// Describe implements tool.Source: it looks for the program, which cannot be asked.
func (s *source) Describe(_ context.Context, d *tool.Definition) ([]tool.Function, error) {
	program := d.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return nil, reason.New(reason.ToolError, "tool %q: %s is not an absolute path", d.Name, program)
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, reason.New(reason.ToolError, "tool %q: find its program: %w", d.Name, err)
	}
	return []tool.Function{{Name: d.Name, Description: d.Description, Parameters: d.Parameters}}, nil
}

// Serve implements tool.Source.
func (s *source) Serve(_ context.Context, d *tool.Definition, beyond tool.Outside) (tool.Server, error) {
	if err := s.pool.Sandboxed(d); err != nil {
		return nil, err
	}
	if seen := s.pool.Showing(d, beyond); seen != nil {
		return tool.Once(&tool.PerCall{Start: s.starter(d, seen, true)}), nil
	}
	return &tool.PerCall{Start: s.starter(d, s.pool.Profile(d.Program()), d.Spec.Isolation.Fresh)}, nil
}

// Close implements tool.Source.
func (s *source) Close() error { return nil }

// starter starts the program of a tool in a sandbox, or, without a profile, in none.
func (s *source) starter(d *tool.Definition, profile *spec.Profile, fresh bool) tool.Starter {
	program := sandbox.Spec{Argv: d.Command, Profile: profile, Fresh: fresh}
	return func(ctx context.Context, req host.CallRequest, env []string, out, errs io.Writer) (tool.Running, error) {
		start := program
		start.Dir, start.Stdin, start.Stdout, start.Stderr = tool.StartDir(profile, req.Workspace), bytes.NewReader(req.Args), out, errs
		start.Env = append(s.pool.Environment(d.Program()), env...)
		p, err := s.pool.Launcher().Start(ctx, start)
		if err != nil {
			return nil, tool.WithHint(err, hint(profile))
		}
		return tool.OnHost{Process: p}, nil
	}
}

// hint is the hint for a command that does not start. In a sandbox a script
// often lacks its interpreter, which the error of the kernel does not name.
func hint(profile *spec.Profile) string {
	text := "check spec.source.exec.command of the Tool"
	if profile != nil {
		text += "; in a sandbox it sees " + tool.InSight
	}
	return text
}
