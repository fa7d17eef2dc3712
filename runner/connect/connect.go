// Package connect uses declared tools without a run: it asks what they are, calls them, logs in at their servers, and locks manifests with what they describe.
package connect

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/secret"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// registries are the model providers and tool sources that there are.
func registries() plan.Registries {
	return plan.Registries{Providers: provider.All(), Sources: sources.All()}
}

// ToolOptions name a Tool of manifests that is used without a run.
type ToolOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Tool is the name of the Tool, or its call name.
	Tool string
	// Workspace is the folder whose files the tool sees; "" is the current one.
	Workspace string
	// State, AllowUnsandboxed and Containerd are those of runner.RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
	// LeftOut is called with the functions of the tool that no run can use. Ask answers
	// questions of the tool. Optional.
	LeftOut func(of string, all []tool.Omission)
	Ask     func(ctx context.Context, call string, q host.Question) (string, error)
}

// UseTool isolates a Tool of manifests and resolves its secrets as a run does, and hands
// it to a function with what removes the secrets from a text that is JSON. Its errors are
// an *InvalidError, a *reason.UsageError, or have a reason.
func UseTool(ctx context.Context, o ToolOptions, use func(ctx context.Context, p *tool.Pool, d *tool.Definition, hide func([]byte) []byte) error) error {
	d, err := plan.FindTool(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: registries()}, o.Tool)
	if err != nil {
		return err
	}
	state, err := statedir.Find(o.State)
	if err != nil {
		return err
	}
	if o.Workspace == "" {
		o.Workspace = "."
	}
	if o.Workspace, err = filepath.Abs(o.Workspace); err != nil {
		return reason.Usagef("the workspace: %w", err)
	}
	h := environment.NewHost(environment.HostOptions{Kinds: sources.All(), State: state, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
	err = h.Use(ctx, environment.UseOptions{ID: execution.NewIDs(time.Now)("test"), Dir: o.Workspace, Tool: *d, LeftOut: o.LeftOut, Ask: o.Ask}, func(ctx context.Context, p *tool.Pool, hide *secret.Redactor) error {
		return use(ctx, p, d, hide.JSON)
	})
	return errors.Join(err, h.Close())
}
