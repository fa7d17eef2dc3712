package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
)

// Tools are the tools of a run, with what their programs report about them.
type Tools struct {
	Definitions []tool.Definition

	env  *Environment
	pool *tool.Pool
	// guard is nil where no program is isolated.
	guard *guard
	// judge decides which files programs may see; nil before there is a Toolbox.
	judge Judge
}

// Tools begins to start the shipped tools, and asks other programs for what their
// manifests leave out.
func (e *Environment) Tools(ctx context.Context) (*Tools, error) {
	o := e.o
	t := &Tools{Definitions: o.Tools, env: e}
	pool := tool.PoolOptions{
		Run: o.Run, Dir: e.Root(), Env: e.secrets.env, Secrets: e.secrets.sources, Learn: e.secrets.learn, Reveals: e.secrets.revealed, Pins: o.Pins, Past: o.Past, History: o.History, Ask: o.Ask,
		LeftOut: func(of string, all []tool.Omission) {
			if len(all) > 0 {
				e.Warn(fmt.Sprintf("tool %q: %d of its functions left out: %s", of, len(all), tool.Omitted(all)))
			}
		},
	}
	var err error
	if pool.Profiles, pool.Begun, err = e.isolate(); err != nil {
		return nil, err
	}
	if len(pool.Profiles) > 0 || e.host.site.Opened(v1alpha1.IsolationContainer) {
		t.guard = &guard{files: e.Files, tools: o.programs(), protect: e.host.launcher.Protect, warn: e.Warn, inForce: make(chan struct{})}
		pool.Guard = t.guard.wait
	}
	t.pool = e.host.pool(pool)
	t.pool.Start(ctx, shipped(t.Definitions))
	if err := t.describe(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// isolate returns how the tools are isolated, and what was begun with that.
func (e *Environment) isolate() (map[string]*spec.Profile, *tool.Begun, error) {
	if a := e.o.Ahead; a != nil {
		return a.profiles, a.pool.HandOver(), nil
	}
	profiles, err := e.host.profiles(e.o.programs(), e.o.Workspace)
	return profiles, nil, err
}

// shipped are the tools that agentctl brings along, foreign all others.
func shipped(tools []tool.Definition) []tool.Definition { return pick(tools, true) }
func foreign(tools []tool.Definition) []tool.Definition { return pick(tools, false) }

func pick(tools []tool.Definition, ours bool) []tool.Definition {
	return slices.DeleteFunc(slices.Clone(tools), func(d tool.Definition) bool { return (d.Shipped != "") != ours })
}

// Judge decides which files programs may see.
type Judge interface {
	// Unreadable returns those of some files that a call must not read.
	Unreadable(ctx context.Context, call message.ToolCall, files []string) ([]string, error)
	// Masked returns those of some files that no call may read.
	Masked(ctx context.Context, files []string) ([]string, error)
	// Fixed returns those of some files that no program may change.
	Fixed(ctx context.Context, files []string) ([]string, error)
	// Declared judges a command that the agent declares, and about which nobody is asked.
	Declared(ctx context.Context, call message.ToolCall, argv []string, contained bool) (message.Decision, error)
}

// Toolbox checks and executes the calls of a run. Close it.
type Toolbox struct {
	*tool.Registry
	stop []func()
}

// Toolbox returns what checks and executes the calls. Programs that see files are started
// once the judge has decided which.
func (t *Tools) Toolbox(ctx context.Context, judge Judge) (*Toolbox, error) {
	o, files := t.env.o, t.env.Files
	box := &Toolbox{}
	t.judge = judge
	if t.guard != nil {
		box.stop = append(box.stop, t.guard.enforce(ctx, judge))
	}
	t.pool.Start(ctx, foreign(t.Definitions))
	ahead, cancel := context.WithCancel(ctx)
	box.stop = append(box.stop, cancel)
	t.pool.Begin(ahead, t.Definitions)
	checks, end := t.checks(ctx, judge)
	box.stop = append(box.stop, end)
	free := tool.FreeSpace(files.Root())
	var keep func(string)
	if t.env.secrets.learns {
		keep = t.env.secrets.keep
	}
	var err error
	box.Registry, err = tool.NewRegistry(tool.Options{
		Keep:  keep,
		Tools: t.Definitions, Serve: t.pool.Serve, Profile: t.pool.Profile, Workspace: t.workspace, Blobs: o.Journal, Now: time.Now,
		Redactor: t.env.secrets.Redactor, Run: o.Run, Agent: o.Agent, Todos: o.Todos, Inquire: o.Inquire, Subagents: o.Subagents, Copies: o.Copies, Merge: t.merge, Coders: t.code, Skills: o.Skills, Items: o.Items, Inform: o.Inform, RecordPrograms: o.RecordPrograms,
		Checks: checks, Unreadable: judge.Unreadable, Masked: judge.Masked, Unseen: t.env.host.site.Options().Unseen,
		Space: free, Growth: &tool.Growth{Limit: files.files.GrowthLimit(), Measure: files.files.Growth, Free: free},
	})
	if err != nil {
		box.Close()
		return nil, err
	}
	return box, nil
}

// workspace returns the files of the run for a call, when they are there and guarded.
func (t *Tools) workspace(ctx context.Context) (string, error) {
	dir, err := t.env.touch(ctx)
	if err != nil || t.guard == nil {
		return dir, err
	}
	_, _, err = t.guard.wait(ctx)
	return dir, err
}

// Close ends what the toolbox has begun in the background and waits for its end.
func (b *Toolbox) Close() {
	for _, stop := range slices.Backward(b.stop) {
		stop()
	}
}
