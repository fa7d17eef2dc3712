package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/endpoint"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// Relay is how the program of a coding agent asks a model.
type Relay struct {
	// Model that it asks.
	Model *v1alpha1.Model
	// Options of its endpoint, without the key, the token and what counts.
	endpoint.Options
	// Window is how much the model holds, in tokens; 0 is not known.
	Window int64
	// Use returns what was used so far, once the program has ended.
	Use func() message.Coding
}

// Relays returns how a program asks a model in a call: one of that name, or by default.
type Relays func(call, tool string, p v1alpha1.CodingProgram, model string, api coder.API) (*Relay, error)

// codingHome is where a program in a sandbox finds its home folder.
const codingHome = "/home/agent"

// coding is one execution of the program of a coding agent of others.
type coding struct {
	t      *Tools
	d      *tool.Definition
	call   message.ToolCall
	task   tool.CodingTask
	driver coder.Driver

	// program is its file, held its sandbox; nil where there is none.
	program string
	held    *spec.Profile
	// dir is the copy and home the program's home, on this host; seen is that as it sees it.
	dir, home, seen string
}

// code implements tool.Coders: it copies the files, runs the program on the copy, and finds
// out what has become of that.
func (t *Tools) code(ctx context.Context, d *tool.Definition, call message.ToolCall, task tool.CodingTask, progress func(string)) (*tool.CodingEnd, error) {
	refused := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &message.CallError{Code: message.CodeTool, Text: fmt.Sprintf("%s was not started: %v", task.Program.Agent, err)}
	}
	c := &coding{t: t, d: d, call: call, task: task}
	var ok bool
	if c.driver, ok = coder.DriverOf(string(task.Program.Agent)); !ok {
		return nil, refused(errors.New("no driver"))
	}
	root, err := t.workspace(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.find(); err != nil {
		return nil, refused(err)
	}
	relay, err := t.env.o.Relay(call.ID, d.Name, task.Program, task.Model, c.driver.API)
	if err != nil {
		return nil, refused(err)
	}
	progress("copies the files")
	files, version, err := c.prepare(ctx, root)
	if err != nil {
		return nil, refused(err)
	}
	defer func() { _ = errors.Join(files.Close(), fstree.Remove(c.dir)) }() // a copy that is left is in the folder of the run
	end, err := c.execute(ctx, files, version, relay, progress)
	if err != nil {
		return nil, refused(err)
	}
	if err := c.compare(ctx, files, end); err != nil {
		return nil, err
	}
	if task.Mode == v1alpha1.CodingInPlace && end.Outcome == message.CodingCompleted && end.Change != "" {
		if err := c.take(ctx, root, end); err != nil {
			end.Outcome, end.Why = message.CodingFailed, err.Error()
		}
	}
	return end, nil
}

// find finds the program, and the sandbox that holds it.
func (c *coding) find() error {
	launcher, minimum := c.t.env.host.launcher, c.d.Spec.Isolation.Minimum
	if err := launcher.Require(c.d.Name, minimum, v1alpha1.NetworkNone); err != nil {
		return err
	}
	path, err := exec.LookPath(c.task.Program.Command[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fmt.Errorf("its program was not found: %w; %s installs it", err, c.driver.Install)
	}
	run := c.t.env.o.Dir
	c.program, c.home = path, filepath.Join(run, "coding", "home", c.driver.Name)
	c.dir = filepath.Join(run, "coding", filepath.Base(CopyDir("", c.t.env.o.Run, c.t.env.o.Workspace.Source)))
	c.seen = c.home
	if launcher.Grant(minimum) != v1alpha1.IsolationSandbox {
		return nil
	}
	c.seen = codingHome
	c.held = &spec.Profile{
		Workspace: c.dir, Access: spec.AccessReadWrite, Network: spec.NetworkProxy, Group: "coding/" + c.t.env.o.Run + "/" + c.call.ID, Tools: []string{c.d.Name},
		Mounts: []spec.Mount{{Source: c.home, Target: codingHome, Writable: true}},
	}
	if c.task.Mode == v1alpha1.CodingReport {
		c.held.Access = spec.AccessReadOnly
	}
	if root := packages(path); root != "" {
		c.held.Mounts = append(c.held.Mounts, spec.Mount{Source: root})
	}
	for _, m := range c.d.Spec.Isolation.Mounts {
		target, err := tool.Mountable(m.Path)
		if err != nil {
			return err
		}
		at := tool.Place{Masked: c.t.env.host.site.Options().Unseen}
		masked, err := at.Hidden(m.Path, target)
		if err != nil {
			return err
		}
		c.held.Mounts = append(c.held.Mounts, spec.Mount{Source: target, Target: m.Path, Writable: m.Access == v1alpha1.MountReadWrite})
		c.held.Masked = append(c.held.Masked, masked...)
	}
	c.held.Limits = limits(c.d.Spec.Limits)
	return nil
}

func limits(l v1alpha1.ToolLimits) spec.Limits {
	s := spec.Limits{Pids: l.Pids}
	if l.Memory != nil {
		s.Memory = l.Memory.Value()
	}
	if l.CPU != nil {
		s.CPU = l.CPU.MilliValue()
	}
	if l.Scratch != nil {
		s.Scratch = l.Scratch.Value()
	}
	return s
}

// packages is the folder of packages that a program is part of, which its script needs; "" is
// none.
func packages(path string) string {
	const folder = "/node_modules/"
	if at := strings.Index(path, folder); at >= 0 {
		return path[:at+len(folder)-1]
	}
	return ""
}

// prepare copies the files, and finds out the version of the program while it does.
func (c *coding) prepare(ctx context.Context, root string) (files *workspace.Workspace, version string, err error) {
	if err := os.MkdirAll(c.home, 0o700); err != nil {
		return nil, "", err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var asked sync.WaitGroup
	var unknown error
	asked.Go(func() { version, unknown = c.version(asking) })
	if files, err = c.copy(ctx, root); err != nil {
		cancel()
	}
	asked.Wait()
	if err != nil {
		return nil, "", err
	}
	if unknown != nil {
		return nil, "", errors.Join(unknown, files.Close(), fstree.Remove(c.dir))
	}
	return files, version, nil
}

// execute runs the program on the copy.
func (c *coding) execute(ctx context.Context, files *workspace.Workspace, version string, relay *Relay, progress func(string)) (*tool.CodingEnd, error) {
	token := rand.Text()
	o := relay.Options
	o.Token = token
	o.Key = func(context.Context) (string, error) {
		key, err := c.t.env.secrets.Keys.Of(relay.Model)
		if err != nil {
			return "", err
		}
		return key.Reveal(), nil
	}
	server := endpoint.New(o)
	address, stop, err := c.serve(ctx, server)
	if err != nil {
		return nil, err
	}
	defer stop()
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := c.watch(limited, cancel, files)
	limit := coder.DefaultLimits()
	limit.Wall = c.task.Timeout
	limit.First = min(limit.First, limit.Wall)
	progress(string(c.task.Program.Agent) + " " + version + " begins")
	show := c.t.env.secrets.Redactor.NewProgress()
	ended, err := coder.Run(limited, coder.Job{
		Driver: &c.driver, Limits: limit, Launch: c.launch, Refused: server.Refused,
		Progress: func(text string) { progress(show.Show(text + "\n")) },
		Task: coder.Task{
			Prompt: c.prompt(), Dir: c.dir, Home: c.seen, Model: relay.Model.Spec.Model, Endpoint: "http://" + address, Token: token,
			Window: relay.Window, Output: relay.Output, ReadOnly: c.task.Mode == v1alpha1.CodingReport, Contained: c.held != nil,
			Session: c.task.Session, Args: c.task.Args,
		},
	})
	cancel(nil)
	watched()
	if err != nil {
		return nil, err
	}
	if why := context.Cause(limited); ended.Outcome != message.CodingCompleted && ctx.Err() == nil && !errors.Is(why, context.Canceled) {
		ended.Why = why.Error()
	}
	stop() // no request is in flight any more
	end := &tool.CodingEnd{
		Coding: relay.Use(), Text: ended.Said.Text, Why: ended.Why, Warning: ended.Warning, Exit: ended.Exit,
		Stdout: ended.Stdout, Stderr: ended.Stderr, Took: ended.Took, Workspace: filepath.Base(c.dir),
	}
	end.Agent, end.Version, end.Mode, end.Outcome = c.driver.Name, version, string(c.task.Mode), ended.Outcome
	end.Session, end.Requests = ended.Said.Session, server.Requests()
	if c.task.Path != "." {
		end.Path = c.task.Path
	}
	return end, nil
}
