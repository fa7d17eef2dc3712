// Package doctor reports what this host gives to contain tools with, and what runs need of it: models, git, a network.
package doctor

import (
	"context"
	"fmt"
	"path/filepath"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/statedir"
)

// Options select what is checked.
type Options struct {
	// State is the folder that holds runs; see statedir.Find.
	State string
	// Containerd is its socket; see RunOptions.
	Containerd string
}

// Diagnosis is what this host gives to runs.
type Diagnosis struct {
	// OK is set when tools run in a sandbox here and no attempt to escape from
	// it succeeded.
	OK bool `json:"ok"`
	// Isolation is the tightest level for programs of this host: None or Sandbox.
	Isolation v1alpha1.IsolationLevel `json:"isolation"`
	// Containers is set when tools that are images can run.
	Containers bool `json:"containers"`
	// OuterIsolation is what AGENTCTL_OUTER_ISOLATION declares, or "".
	OuterIsolation string `json:"outerIsolation"`
	// Controls are the parts of the containment.
	Controls []Control `json:"controls"`
	// Escapes are the attempts to escape from a sandbox; none where there is no
	// sandbox.
	Escapes []Escape `json:"escapes"`
	// Models are the ways to models that were looked for.
	Models []ModelSource `json:"models"`
	// Host are the other needs of a run.
	Host []Need `json:"host"`
	// Swept counts what killed runs had left in containerd and is gone now.
	Swept int `json:"swept"`
}

// Control is one part of the containment on this host.
type Control struct {
	// Name of the part and the level it belongs to.
	Name  string                  `json:"name"`
	Level v1alpha1.IsolationLevel `json:"level"`
	// OK is set when it is in force. Needed is set when there is no such level
	// without it.
	OK     bool `json:"ok"`
	Needed bool `json:"needed"`
	// Why is what was found, Hint how to get it; "" where it is in force.
	Why  string `json:"why"`
	Hint string `json:"hint"`
}

// Escape is one try to get out of a sandbox.
type Escape struct {
	Name string `json:"name"`
	// Open is set when something outside was reached.
	Open bool `json:"open"`
	// How it was stopped.
	How string `json:"how"`
}

// Examine checks what this host supports, by doing it: it builds a sandbox,
// tries to get out of it, connects to containerd and asks for local models. What killed
// runs have left in containerd is removed.
func Examine(ctx context.Context, o Options) (*Diagnosis, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	launcher := sandbox.New(sandbox.Options{Outer: sandbox.OuterIsolation()})
	defer func() { _ = launcher.Close() }() // no program runs in it any more
	d := &Diagnosis{Isolation: launcher.Level(), OuterIsolation: sandbox.OuterIsolation(), Controls: []Control{}, Escapes: []Escape{}}
	for _, c := range launcher.Probe(ctx) {
		d.Controls = append(d.Controls, Control{c.Name, v1alpha1.IsolationSandbox, c.OK, c.Needed, c.Why, c.Hint})
	}
	d.OK = d.Isolation == v1alpha1.IsolationSandbox
	if d.OK {
		tries, err := launcher.Escape(ctx)
		if err != nil {
			return nil, fmt.Errorf("try to get out of a sandbox: %w", err)
		}
		d.tried(tries)
	}
	d.containerd(ctx, o.Containerd, state)
	d.Models, d.Host = modelSources(ctx, state, localServers()), needs(ctx)
	return d, nil
}

func (d *Diagnosis) tried(tries []spec.Attempt) {
	for _, t := range tries {
		d.Escapes = append(d.Escapes, Escape{t.Name, t.Open, t.How})
		if t.Open {
			d.OK = false
		}
	}
}

func (d *Diagnosis) containerd(ctx context.Context, socket, state string) {
	c := Control{Name: "containerd", Level: v1alpha1.IsolationContainer, Needed: true}
	info, swept, err := lookAtContainerd(ctx, socket, state)
	if err != nil {
		c.Why, c.Hint = err.Error(), reason.Hint(err)
	} else {
		c.OK, d.Containers, d.Swept = true, true, swept
		c.Why = fmt.Sprintf("%s at %s, snapshotter %s", info.Version, info.Address, info.Snapshotter)
	}
	d.Controls = append(d.Controls, c)
}

func lookAtContainerd(ctx context.Context, socket, state string) (info container.Info, swept int, err error) {
	runtime, err := container.Open(socket, filepath.Clean(state))
	if err != nil {
		return info, 0, err
	}
	defer func() { _ = runtime.Close() }() // it has started nothing
	if info, err = runtime.Probe(ctx); err != nil {
		return info, 0, err
	}
	left, err := runtime.Sweep(ctx)
	return info, left.Containers + left.Snapshots + left.Folders, err
}
