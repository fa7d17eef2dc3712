package connect

import (
	"context"
	"io"
	"maps"
	"slices"

	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/lock"
	"agentctl.dev/agentctl/runner/plan"
)

// LockOptions name manifests to lock. Paths are required.
type LockOptions struct {
	// Paths and Stdin are those of runner.RunOptions.
	Paths []string
	Stdin io.Reader
	// File is the lock; "" is the one beside the first of the paths.
	File string
	// Check compares with the lock instead of writing it.
	Check bool
	// State, AllowUnsandboxed and Containerd are those of runner.RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
}

// Locked is what came of a lock.
type Locked struct {
	File    string `json:"file"`
	Objects int    `json:"objects"`
	// Changes are those since the lock before; nil without one.
	Changes []lock.Change `json:"changes"`
	// Unpinned are tools whose functions only a run can ask for.
	Unpinned []string `json:"unpinned"`
}

// Lock pins what the agents of manifests use: models, programs, images, skills, and what
// programs and servers describe, for which it starts them. With Check, what has moved is an
// error with the reason LockDrift; its other errors are those of
// Probe, a *manifest.InvalidError or a *reason.UsageError.
func Lock(ctx context.Context, o LockOptions) (*Locked, error) {
	known := registries()
	read, err := plan.Admit(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Registries: known, Images: artifact.OfSkills(o.State, false)})
	if err != nil {
		return nil, err
	}
	if o.File == "" {
		o.File = lock.Beside(o.Paths[0])
	}
	out := &Locked{File: o.File, Changes: []lock.Change{}, Unpinned: []string{}}
	entries, err := o.entries(ctx, read.Catalog, known, out)
	if err != nil {
		return nil, err
	}
	out.Objects = len(entries)
	before, err := lock.Read(o.File)
	if err == nil {
		out.Changes = append(out.Changes, before.Moved(entries, true)...)
	}
	if o.Check {
		if err != nil {
			return nil, err
		}
		return out, lock.Error(o.File, out.Changes)
	}
	return out, lock.New(entries).Write(o.File)
}

// entries are those of all agents and models of manifests.
func (o *LockOptions) entries(ctx context.Context, c *admission.Catalog, known plan.Registries, out *Locked) ([]lock.Entry, error) {
	entries, tools, err := lock.OfAll(c, known.Providers, known.Sources)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		facts, err := Probe(ctx, ProbeOptions{Tool: tools[name], State: o.State, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
		if err != nil {
			return nil, err
		}
		if facts.Digest == "" {
			out.Unpinned = append(out.Unpinned, name)
			continue
		}
		entries = lock.Describe(entries, name, facts.Name, facts.Digest)
	}
	return entries, nil
}
