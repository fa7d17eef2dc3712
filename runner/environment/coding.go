package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/endpoint"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/sandbox"
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
	files, err := c.copy(ctx, root)
	if err != nil {
		return nil, refused(err)
	}
	defer func() { _ = errors.Join(files.Close(), fstree.Remove(c.dir)) }() // a copy that is left is in the folder of the run
	end, err := c.execute(ctx, files, relay, progress)
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

// copy copies the files that the program may see.
func (c *coding) copy(ctx context.Context, root string) (*workspace.Workspace, error) {
	own := filepath.Join(root, filepath.FromSlash(c.task.Path))
	others, err := beside(root, c.task.Path)
	if err != nil {
		return nil, err
	}
	for _, p := range c.task.Paths {
		if err := unlinked(own, p); err != nil {
			return nil, err
		}
	}
	masked, err := c.masked(ctx, root)
	if err != nil {
		return nil, err
	}
	used, err := fstree.Measure(ctx, own, workspace.MaxListed)
	if err != nil {
		return nil, err
	}
	if err := tool.Fits(c.t.env.o.Dir, used.Bytes); err != nil {
		return nil, err
	}
	if err := errors.Join(fstree.Remove(c.dir), os.RemoveAll(c.dir+".base"), os.MkdirAll(c.home, 0o700)); err != nil { // of a process that was killed
		return nil, err
	}
	s := c.t.env.o.Workspace
	files, err := workspace.Prepare(ctx, workspace.Spec{
		Strategy: v1alpha1.StrategyCopy, Source: root, From: root, Dir: c.dir, Exclude: others, Skip: masked,
		SizeLimit: s.SizeLimit, GrowthLimit: s.GrowthLimit, MaxFiles: s.MaxFiles, MaxListed: s.MaxListed, Blobs: c.t.env.o.Journal,
	})
	if err != nil {
		return nil, err
	}
	if err := files.Ready(ctx); err != nil {
		return nil, errors.Join(err, files.Close(), fstree.Remove(c.dir))
	}
	return files, nil
}

// beside are patterns of what lies beside a folder, and beside those above it: what a copy of
// the folder leaves out. Links on the way are refused.
func beside(root, folder string) (others []string, err error) {
	if err := unlinked(root, folder); err != nil || folder == "." {
		return nil, err
	}
	at := ""
	for part := range strings.SplitSeq(folder, "/") {
		entries, err := os.ReadDir(filepath.Join(root, at))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Name() != part {
				others = append(others, "/"+quoteGlob(at+e.Name()))
			}
		}
		at += part + "/"
	}
	info, err := os.Stat(filepath.Join(root, folder))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("path %q: not a folder", folder)
	}
	return others, err
}

// unlinked refuses a path below a folder that does not exist, or that a link is part of.
func unlinked(root, path string) error {
	if path == "." {
		return nil
	}
	at := root
	for part := range strings.SplitSeq(path, "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("path %q: there is no such file or folder", path)
		case err != nil:
			return fmt.Errorf("path %q: %w", path, err)
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("path %q: a part of it is a link", path)
		}
	}
	return nil
}

// quoteGlob is a pattern of exactly one path.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(path)
}

// masked are the files that the call must not read, as absolute paths.
func (c *coding) masked(ctx context.Context, root string) (all []string, err error) {
	if g := c.t.guard; g != nil {
		if _, all, err = g.wait(ctx); err != nil {
			return nil, err
		}
		all = slices.Clone(all)
	}
	var names []string
	for _, e := range c.t.env.files.Base().Entries {
		if e.Type != workspace.TypeDir {
			names = append(names, string(e.Path))
		}
	}
	hidden, err := c.t.judge.Unreadable(ctx, c.call, names)
	for _, name := range hidden {
		all = append(all, filepath.Join(root, name))
	}
	return all, err
}

// execute runs the program on the copy.
func (c *coding) execute(ctx context.Context, files *workspace.Workspace, relay *Relay, progress func(string)) (*tool.CodingEnd, error) {
	version, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
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

// prompt is the task, with the files that it is about.
func (c *coding) prompt() string {
	if len(c.task.Paths) == 0 {
		return c.task.Prompt
	}
	return c.task.Prompt + "\n\nThis is about these files and folders:\n- " + strings.Join(c.task.Paths, "\n- ")
}

// serve serves the model to the program: in its sandbox, where that is its only network, and
// otherwise on this host.
func (c *coding) serve(ctx context.Context, server *endpoint.Endpoint) (address string, stop func(), err error) {
	h := c.t.env.host
	if c.held != nil {
		h.endpoints.Store(c.held.Group, server)
		return spec.ProxyAddress, func() { h.endpoints.Delete(c.held.Group) }, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(ctx, l) }) // a program whose server has gone fails by itself
	return l.Addr().String(), sync.OnceFunc(func() { cancel(); wg.Wait() }), nil
}

// launch starts the program in a sandbox of its own.
func (c *coding) launch(ctx context.Context, s coder.Start, stdout, stderr io.Writer) (coder.Program, error) {
	for name, text := range s.Files {
		file := filepath.Join(c.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), fstree.Remove(file), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	return c.start(ctx, c.held, s, stdout, stderr)
}

func (c *coding) start(ctx context.Context, held *spec.Profile, s coder.Start, stdout, stderr io.Writer) (coder.Program, error) {
	dir := c.dir
	if held != nil && held.Access == spec.AccessNone {
		dir = "/tmp"
	} else if c.task.Path != "." {
		dir = filepath.Join(c.dir, filepath.FromSlash(c.task.Path))
	}
	p, err := c.t.env.host.launcher.Start(ctx, sandbox.Spec{
		Argv: append([]string{c.program}, s.Args...), Env: c.environ(held, s.Env), Dir: dir, Stdout: stdout, Stderr: stderr, Profile: held, Fresh: true,
	})
	if err != nil {
		return nil, err
	}
	return &started{p}, nil
}

// environ is the whole environment of the program: what its driver sets wins over what the
// Tool declares.
func (c *coding) environ(held *spec.Profile, own []string) []string {
	own = append(own, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	name := func(kv string) string { n, _, _ := strings.Cut(kv, "="); return n }
	env := slices.DeleteFunc(tool.HeldEnvironment(held, c.t.env.secrets.env[c.d.Name]), func(kv string) bool {
		return slices.ContainsFunc(own, func(other string) bool { return name(other) == name(kv) })
	})
	return append(env, own...)
}

// started is a program that was started.
type started struct{ *sandbox.Process }

// Wait implements coder.Program.
func (s *started) Wait() coder.Exit {
	e := s.Process.Wait()
	return coder.Exit{Code: e.Code, Signal: e.Signal}
}

// versionTime bounds how long a program takes to say its version.
const versionTime = 60 * time.Second

// version asks the program for its version, once for each file, and refuses another than is
// declared: its command line and its events may be others.
func (c *coding) version(ctx context.Context) (string, error) {
	info, err := os.Stat(c.program)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d %d", c.program, info.Size(), info.ModTime().UnixNano())
	h := c.t.env.host
	found, known := h.versions.Load(key)
	version, _ := found.(string)
	if !known {
		if version, err = c.ask(ctx); err != nil {
			return "", err
		}
		h.versions.Store(key, version)
	}
	if version != c.task.Program.Version {
		return "", fmt.Errorf("%s is version %q, and %q is expected: %s installs the version that was tested, or write version in spec.source.builtin.coding.programs of the Tool",
			c.program, version, c.task.Program.Version, c.driver.Install)
	}
	return version, nil
}

// ask runs the program with --version, in a sandbox that shows it nothing.
func (c *coding) ask(ctx context.Context) (string, error) {
	var held *spec.Profile
	if c.held != nil {
		seen := *c.held
		seen.Workspace, seen.Access, seen.Network, seen.Group = "", spec.AccessNone, spec.NetworkNone, c.held.Group+"/version"
		held = &seen
	}
	var out, errs beginning
	p, err := c.start(ctx, held, coder.Start{Args: []string{"--version"}, Env: []string{"HOME=" + c.seen}}, &out, &errs)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(versionTime)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		p.Kill(0)
		return "", fmt.Errorf("%s --version has not ended within %s", c.program, versionTime)
	case <-ctx.Done():
		p.Kill(0)
		return "", context.Cause(ctx)
	}
	if e := p.Wait(); e != (coder.Exit{}) {
		return "", fmt.Errorf("%s --version ended with %s: %s", c.program, e, coder.Tail(strings.TrimSpace(errs.String())))
	}
	version := c.driver.Version(out.String())
	if version == "" {
		return "", fmt.Errorf("%s --version does not name a version of %s: %q", c.program, c.driver.Name, coder.Clip(out.String(), 80))
	}
	return version, nil
}

// beginning keeps the first bytes of what a program prints.
type beginning struct{ kept []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	const most = 64 << 10
	b.kept = append(b.kept, p[:min(len(p), most-len(b.kept))]...)
	return len(p), nil
}

func (b *beginning) String() string { return string(b.kept) }

// watchEvery is how often the disk is looked at while a program runs.
const watchEvery = time.Second

// watch ends the execution when the copy, or the home of the program, outgrows what a call
// may add, or when the disk is full.
func (c *coding) watch(ctx context.Context, end context.CancelCauseFunc, files *workspace.Workspace) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		next := watchEvery
		for {
			timer := time.NewTimer(next)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			began := time.Now()
			if err := c.grown(ctx, files); err != nil && ctx.Err() == nil {
				end(err)
				return
			}
			next = max(watchEvery, 20*time.Since(began))
		}
	})
	return wg.Wait
}

// grown returns why the program has written too much; nil if it has not.
func (c *coding) grown(ctx context.Context, files *workspace.Workspace) error {
	if err := tool.Fits(c.dir, 0); err != nil {
		return fmt.Errorf("it was ended because it filled the disk: %w", err)
	}
	grown, err := files.Growth(ctx)
	if err != nil {
		return nil //nolint:nilerr // the tree changes while it is measured
	}
	home, err := fstree.Measure(ctx, c.home, workspace.MaxListed)
	if err != nil {
		return nil //nolint:nilerr // the same
	}
	if limit := files.GrowthLimit(); grown+home.Bytes > limit {
		return fmt.Errorf("it was ended because it has written more than %d MiB (spec.workspace.growthLimit)", limit>>20)
	}
	return nil
}

// compare finds out what was changed in the copy, and keeps it with what was printed.
func (c *coding) compare(ctx context.Context, files *workspace.Workspace, end *tool.CodingEnd) (err error) {
	ctx = context.WithoutCancel(ctx) // what a cancelled call has done is evidence, too
	j, redactor := c.t.env.o.Journal, c.t.env.secrets.Redactor
	end.Stdout.Kept, end.Stderr.Kept = redactor.Bytes(redactor.JSON(end.Stdout.Kept)), redactor.Bytes(end.Stderr.Kept)
	end.Text, end.Why = redactor.String(end.Text), redactor.String(end.Why)
	if len(end.Stdout.Kept) > 0 {
		if end.Log, err = j.PutBlob(end.Stdout.Kept); err != nil {
			return err
		}
	}
	if len(end.Stderr.Kept) > 0 {
		if end.Errors, err = j.PutBlob(end.Stderr.Kept); err != nil {
			return err
		}
	}
	if end.Before, err = files.Base().Record(j); err != nil {
		return err
	}
	change, err := files.Changes(ctx)
	if err != nil {
		end.Outcome, end.Why = message.CodingFailed, "the files could not be compared: "+err.Error()
		return nil //nolint:nilerr // it is the end of the program
	}
	if change.Empty() {
		return nil
	}
	patch, err := change.Record(j)
	if err != nil {
		return err
	}
	end.Change, end.Diff, end.After = patch.Change, patch.Diff, patch.Change
	end.Added, end.Removed = change.Summary.LinesAdded, change.Summary.LinesRemoved
	end.Files, end.Changes = changedFiles(change, end.Outcome)
	if c.task.Mode == v1alpha1.CodingReport {
		end.Outcome, end.Why = message.CodingFailed, "it has changed files, and mode report changes none"
	}
	return nil
}

// Bounds of what one call takes over: each file is judged by name.
const (
	mostTaken     = 1000
	mostTakenText = 64 << 10
)

// changedFiles are the files of a change, for the result and for a call that takes them over.
func changedFiles(change *workspace.Change, outcome message.CodingOutcome) (files []tool.CodedFile, all *message.CopyChanges) {
	all = &message.CopyChanges{}
	text := 0
	for _, f := range change.Files {
		one := tool.CodedFile{Path: strings.ToValidUTF8(string(f.Path), "\uFFFD"), Status: f.Change}
		if f.Old != nil {
			one.Before = f.Old.Hash
		}
		if f.New != nil {
			one.After = f.New.Hash
		}
		files = append(files, one)
		switch {
		case one.Path != string(f.Path):
			all.Unmergeable = fmt.Sprintf("the name of %q is not UTF-8", one.Path)
		case f.NotApplicable != "":
			all.Unmergeable = fmt.Sprintf("the content of %s is not recorded: %s", one.Path, f.NotApplicable)
		case f.Change == workspace.Deleted:
			all.Deleted = append(all.Deleted, one.Path)
		default:
			all.Changed = append(all.Changed, one.Path)
		}
		text += len(f.Path)
	}
	switch {
	case outcome != message.CodingCompleted:
		all.Unmergeable = "the agent has not succeeded: " + string(outcome)
	case len(files) > mostTaken || text > mostTakenText:
		all.Unmergeable = fmt.Sprintf("there are %d files; at most %d, with names of %d bytes altogether, are taken over", len(files), mostTaken, mostTakenText)
	}
	if all.Unmergeable != "" {
		all.Changed, all.Deleted = nil, nil
	}
	return files, all
}

// take makes the change of a program in the files of the run, all or none. What no isolated
// program may change is not changed by it either.
func (c *coding) take(ctx context.Context, root string, end *tool.CodingEnd) error {
	if why := end.Changes.Unmergeable; why != "" {
		return fmt.Errorf("its changes could not be taken over: %s", why)
	}
	m := tool.Merge{Files: end.Changes.Changed, Deleted: end.Changes.Deleted}
	change, err := workspace.ReadChange(c.t.env.o.Journal, end.Change)
	if err == nil {
		change, err = change.Only(m.Files, m.Deleted)
	}
	if err == nil {
		err = errors.Join(c.t.unguarded(ctx, root, m), c.t.room(ctx, change))
	}
	if err == nil {
		err = c.t.unfixed(ctx, m)
	}
	if err == nil {
		err = workspace.Apply(ctx, workspace.Application{
			Source: root, Record: c.t.env.Files.mergeRecord(c.t.env.o.Run, c.call.ID), Change: change, Blobs: c.t.env.o.Journal, Once: true,
		})
	}
	if err != nil && !errors.Is(err, workspace.ErrApplied) {
		return fmt.Errorf("its changes were not taken over: %w", err)
	}
	return nil
}

// unfixed refuses files that a policy lets no program change.
func (t *Tools) unfixed(ctx context.Context, m tool.Merge) error {
	fixed, err := t.judge.Fixed(ctx, slices.Concat(m.Files, m.Deleted))
	if err == nil && len(fixed) > 0 {
		err = fmt.Errorf("path %q: no call may change it", fixed[0])
	}
	return err
}
