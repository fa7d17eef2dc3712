package decisions

import (
	"context"
	"encoding/json"
	"io"

	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/plan"
)

// AccessOptions describe a call that is not executed.
type AccessOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Agent by name; may be "" where the manifests hold one.
	Agent string
	// Above are the agents that have started the agent, that of the run first.
	Above []string
	// Policies are the names of those that narrow the run.
	Policies []string
	// WithoutRepository leaves out the policies of the workspace's repository.
	WithoutRepository bool
	// Workspace is the folder whose files the call would see; "" is that of the
	// manifests, else the current folder.
	Workspace string
	// Tool by call name, and its arguments; none are {}.
	Tool string
	Args json.RawMessage
}

// Access is what the policies decide about a call.
type Access = plan.Access

// Reached is an agent that a call can start.
type Reached = plan.Reached

// Blocker is one thing that would have to be different for a call to be allowed.
type Blocker = plan.Blocker

// CanI judges a call as a run would, without a run: nothing is started, asked or
// written. Its errors are a *manifest.InvalidError or a *reason.UsageError.
func CanI(ctx context.Context, o AccessOptions) (*Access, error) {
	return plan.Judge(ctx, plan.Options{
		Paths: o.Paths, Stdin: o.Stdin, Agent: o.Agent, Above: o.Above, RunPolicies: o.Policies, WithoutRepository: o.WithoutRepository,
		Workspace: o.Workspace, Images: artifact.OfSkills("", true), Registries: registries(),
	}, o.Tool, o.Args)
}
