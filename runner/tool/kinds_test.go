package tool

import (
	"bytes"
	"context"
	"io"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// testKinds are kinds as the sources describe them, which this package cannot import.
func testKinds() Kinds {
	return Kinds{
		{Name: "builtin", Facts: func(s *v1alpha1.ToolSpec) (Facts, error) {
			b, _ := builtin.Lookup(s.Source.Builtin.Name)
			return Facts{
				Shipped: s.Source.Builtin.Name, Function: s.Source.Builtin.Name, Together: true,
				KeepHead: b.KeepHead, FreeText: b.FreeText, Search: b.Search, Creates: b.Creates, URL: b.URL,
			}, nil
		}},
		{Name: "plugin", Facts: func(s *v1alpha1.ToolSpec) (Facts, error) {
			return Facts{Command: s.Source.Plugin.Command, Function: s.Source.Plugin.Tool, Describes: true}, nil
		}, Open: func(p *Pool) Source {
			return &HostPlugins{Pool: p, Program: func(d *Definition) (sandbox.Spec, error) { return sandbox.Spec{Argv: d.Command}, nil }}
		}},
		{Name: "exec", Facts: func(s *v1alpha1.ToolSpec) (Facts, error) {
			return Facts{Command: s.Source.Exec.Command}, nil
		}, Open: func(p *Pool) Source { return commands{p} }},
		{Name: "container", Level: v1alpha1.IsolationContainer, Facts: func(*v1alpha1.ToolSpec) (Facts, error) {
			return Facts{WritesDisk: true}, nil
		}},
	}
}

// testSite is a site with those kinds.
func testSite(launcher *sandbox.Launcher) *Site {
	return NewSite(SiteOptions{Kinds: testKinds(), Launcher: launcher})
}

// of completes a definition with the facts of its source.
func of(d Definition) Definition {
	facts, err := testKinds().Facts(&d.Spec)
	if err != nil {
		panic(err)
	}
	d.Facts = facts
	return d
}

// commands starts a program of this host for each call.
type commands struct{ pool *Pool }

func (commands) Start(context.Context, *Definition) {}

func (commands) Describe(context.Context, *Definition) ([]Function, error) { return nil, nil }

func (c commands) Serve(_ context.Context, d *Definition, _ Outside) (Server, error) {
	if err := c.pool.Sandboxed(d); err != nil {
		return nil, err
	}
	return &PerCall{Start: func(ctx context.Context, req host.CallRequest, env []string, out, errs io.Writer) (Running, error) {
		held := c.pool.Profile(d.Name)
		p, err := c.pool.Launcher().Start(ctx, sandbox.Spec{
			Argv: d.Command, Profile: held, Dir: StartDir(held, req.Workspace), Stdin: bytes.NewReader(req.Args), Stdout: out, Stderr: errs,
			Env: append(c.pool.Environment(d.Name), env...),
		})
		if err != nil {
			return nil, err
		}
		return process{p}, nil
	}}, nil
}

func (commands) Close() error { return nil }

type process struct{ *sandbox.Process }

func (p process) End() Ending {
	info := p.Wait()
	return Ending{Code: info.Code, Signal: info.Signal}
}
