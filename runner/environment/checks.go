package environment

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/diagnose"
)

// checks returns what checks the files that calls have changed, and what ends it.
func (t *Tools) checks(ctx context.Context, judge Judge) (check tool.Checks, end func()) {
	declared := t.env.o.Checks
	if len(declared) == 0 {
		return nil, func() {}
	}
	o := diagnose.Options{Root: t.workspace, Clean: t.env.secrets.Redactor.String, Now: time.Now, Start: t.startCheck}
	contained := t.env.host.Level() != v1alpha1.IsolationNone
	for _, c := range declared {
		o.Checks = append(o.Checks, c.Diagnostic)
		contained = contained && c.Reach == ""
	}
	o.Judge = func(ctx context.Context, call message.ToolCall, argv []string) (message.Decision, error) {
		return judge.Declared(ctx, call, argv, contained)
	}
	checker := diagnose.New(ctx, o)
	return func(ctx context.Context, call message.ToolCall, files []string) ([]message.Check, string) {
		found := checker.Check(ctx, call, files)
		return found, diagnose.Text(found)
	}, checker.Close
}

// startCheck starts the program of a check, contained as declared.
func (t *Tools) startCheck(ctx context.Context, name string, p diagnose.Program) (diagnose.Process, error) {
	name = "diagnostics/" + name
	held := t.pool.Profile(name)
	process, err := t.env.host.launcher.Start(ctx, sandbox.Spec{
		Argv: p.Argv, Env: t.pool.Environment(name), Dir: tool.StartDir(held, t.env.Root()), Profile: held,
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return checkProcess{process}, nil
}

type checkProcess struct{ *sandbox.Process }

// End implements diagnose.Process.
func (p checkProcess) End() (code int, signal string) {
	info := p.Wait()
	return info.Code, info.Signal
}
