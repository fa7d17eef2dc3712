package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// PoolOptions are what a Pool needs.
type PoolOptions struct {
	Launcher *sandbox.Launcher
	// After is the clock by which a program that died waits before it is started
	// again; nil is time.After.
	After func(time.Duration) <-chan time.Time
}

// Pool holds the processes behind the tools of one run. Tools of the same
// program with the same environment share a process; it is started once, in
// the background, and started again after a crash.
type Pool struct {
	PoolOptions
	// Dir is the working folder of the plugins: the root of the run's files. It
	// exists before the files are all there. Our own program needs none.
	Dir string
	// Env holds the declared variables of each tool as NAME=value, by call name.
	Env map[string][]string
	// Profiles say how each tool is contained, by call name; one without is not.
	Profiles map[string]*spec.Profile
	// Fence waits until contained programs can no longer do to the files of the run
	// what they must not; foreign plugins are started behind it. Nil is no wait.
	Fence func(context.Context) error
	// Boxes start the tools that are images; nil where there are none.
	Boxes *Boxes
	// Pins are what programs are known to say of tools, by call name, as Pin returns
	// it; a tool without one is held to what its program says first. A call whose
	// program says something else is refused. It belongs to the pool.
	Pins map[string]string
	// Past returns the calls of the run that have completed, the oldest first. A
	// process that is started in the middle of a run, by a resume or after a
	// crash, is told those of its own tools before its first call, so that it
	// knows what the one before it knew. It is asked from the goroutine of a
	// call; nil is no past.
	Past func() []Past
	// Ask puts a question of a tool, in the call of that id, to the person behind
	// the run. What was asked and answered is told as progress of the call, and so
	// stands in the journal. Nil: nobody is there.
	Ask func(ctx context.Context, call string, q host.Question) (string, error)
	// History returns the newest messages of the run, at most that many unless it
	// is 0, the oldest of them first, and without secrets. Nil: tools get none.
	History func(ctx context.Context, most int) ([]host.Message, error)

	// shipped is where our own program is, looked up once: a call asks for it.
	shipped  func() (string, error)
	mu       sync.Mutex
	programs map[string]*program
	starting sync.WaitGroup
}

// Past is a call that has completed: its tool, by call name, and the metadata of
// its result as it stands in the journal.
type Past struct {
	Tool     string
	Metadata json.RawMessage
}

// NewPool returns a pool without processes. Close it.
func NewPool(o PoolOptions) *Pool {
	if o.After == nil {
		o.After = time.After
	}
	find := func() (string, error) { return sandbox.FindProgram(builtin.Program) }
	return &Pool{PoolOptions: o, shipped: sync.OnceValues(find), programs: map[string]*program{}}
}

// maxStarts is the first start and two more after crashes.
const maxStarts = 3

// backOff is how long a program that died waits before it is started again: what
// killed it, for example a lack of memory, may pass.
func backOff(starts int) time.Duration {
	return 100 * time.Millisecond << (2 * (starts - 1)) // 100 ms, 400 ms
}

// program is one plugin program and its process.
type program struct {
	pool *Pool
	// name is what errors call it; launch says how it is started.
	name   string
	launch func(context.Context) (host.Options, error)
	// image says that it is the program of an image.
	image bool
	// tools of the program in this run by call name, and what the program calls
	// them. The pool's mutex guards both.
	tools     []string
	functions map[string]string

	mu      sync.Mutex
	current *started
	starts  int
}

// started is one process, or the error with which it did not start.
type started struct {
	ready  chan struct{}
	plugin *host.Plugin
	err    error
	// reminded is done when the process knows the past of the run.
	reminded sync.Once
}

// Start begins to start the programs of the plugins among the tools, those of
// images once Boxes is set. It does not wait for them.
func (p *Pool) Start(ctx context.Context, tools []Definition) {
	for i := range tools {
		d := &tools[i]
		if !p.resident(d) {
			continue
		}
		if prog, err := p.program(d); err == nil {
			prog.start(ctx) // an error is told to the call that needs the program
		}
	}
}

// resident says whether a tool has a program that is started before it is called.
func (p *Pool) resident(d *Definition) bool {
	s := d.Spec.Source
	if boxed(d) {
		return p.Boxes != nil && s.Container.Protocol != v1alpha1.ProtocolExec && !d.Spec.Isolation.Fresh
	}
	return s.Builtin != nil || s.Plugin != nil && !d.Spec.Isolation.Fresh
}

// StartShipped begins to start the program of the shipped tools, ahead of
// everything else: it is our own, takes longest to be ready, and does nothing
// before it is asked. Tools that declare variables are left out; their values
// are not known yet.
func (p *Pool) StartShipped(ctx context.Context, tools []Definition) {
	for i := range tools {
		if d := &tools[i]; d.Spec.Source.Builtin != nil && len(d.Spec.Env) == 0 {
			if prog, err := p.program(d); err == nil {
				prog.start(ctx) // an error is told to the call that needs the program
			}
			return
		}
	}
}

// held refuses a program that is to be contained and is not, where others are.
func (p *Pool) held(d *Definition) error {
	if p.Profiles == nil || p.Profiles[d.Name] != nil || d.Spec.Isolation.Minimum == v1alpha1.IsolationNone || boxed(d) {
		return nil
	}
	return reason.New(reason.IsolationUnavailable, "tool %q: nobody has said how it is contained", d.Name)
}

// Serve returns the server behind a tool and waits until it is ready.
func (p *Pool) Serve(ctx context.Context, d *Definition) (Server, error) {
	if err := p.held(d); err != nil {
		return nil, err
	}
	switch s := d.Spec.Source; {
	case s.Exec != nil:
		return &execServer{p.starter(d)}, nil
	case s.Container != nil && s.Container.Protocol == v1alpha1.ProtocolExec:
		return &execServer{p.Boxes.starter(p, d)}, nil
	case s.Builtin != nil, s.Plugin != nil, s.Container != nil:
		prog, err := p.program(d)
		if err != nil {
			return nil, err
		}
		if d.Spec.Isolation.Fresh {
			return &freshServer{prog, d}, nil
		}
		run, err := prog.ready(ctx, d)
		if err != nil {
			return nil, err
		}
		return &pluginServer{prog, run}, nil
	}
	return nil, Unsupported(d)
}

// Unsupported is the error for a source this version cannot start; nil for
// those it can.
func Unsupported(d *Definition) error {
	var source string
	switch s := d.Spec.Source; {
	case s.MCP != nil:
		source = "mcp"
	case s.Agent != nil:
		source = "agent"
	default:
		return nil
	}
	return reason.New(reason.IsolationUnavailable, "tool %q: this version starts no tools with source.%s", d.Name, source).
		WithHint("use source.plugin, source.exec, source.container or source.builtin, or take the tool out of the agent's spec.tools")
}

// Describe asks a plugin what a tool takes, for a manifest that does not say.
func (p *Pool) Describe(ctx context.Context, d *Definition) error {
	infos, err := p.describe(ctx, d)
	if err != nil {
		return wrapped(fmt.Errorf("tool %q: ask the plugin what it takes: %w", d.Name, err), "write spec.parameters of the Tool")
	}
	if err := p.unchanged(d, infos); err != nil {
		return err
	}
	var names []string
	for _, info := range infos {
		if info.Name == d.function() {
			d.Parameters = info.Parameters
			if d.Description == "" {
				d.Description = info.Description
			}
			return nil
		}
		names = append(names, info.Name)
	}
	return reason.New(reason.ToolError, "tool %q: the plugin has no function %q; it has: %s", d.Name, d.function(), strings.Join(names, ", ")).
		WithHint("set spec.source.plugin.tool of the Tool")
}

func (p *Pool) describe(ctx context.Context, d *Definition) ([]host.ToolInfo, error) {
	if boxed(d) {
		return p.Boxes.describe(ctx, d)
	}
	if p.Profiles[d.Name] != nil {
		return p.describeBlind(ctx, d)
	}
	prog, err := p.program(d)
	if err != nil {
		return nil, err
	}
	run, err := prog.wait(ctx)
	if err != nil {
		return nil, err
	}
	return run.plugin.Describe(ctx)
}

// describeBlind asks a contained plugin in a sandbox of its own that shows
// nothing of the run: what is to be kept from it has not been decided yet.
func (p *Pool) describeBlind(ctx context.Context, d *Definition) ([]host.ToolInfo, error) {
	start, err := p.start(d)
	if err != nil {
		return nil, err
	}
	seen := *start.Profile
	seen.Workspace, seen.Access, seen.Network = "", spec.AccessNone, spec.NetworkNone // what mounts must not show stays hidden
	start.Profile, start.Fresh, start.Dir, start.Env = &seen, true, "/tmp", contained(&seen, nil)
	one := &program{pool: p, name: start.Argv[0], tools: []string{d.Name}, launch: func(context.Context) (host.Options, error) {
		return host.Options{Launch: p.Launcher.PluginRunner(start)}, nil
	}}
	return one.describe(ctx)
}

// describe starts the program, asks it what it serves, and ends it.
func (g *program) describe(ctx context.Context) ([]host.ToolInfo, error) {
	plugin, err := g.begin(ctx)
	if err != nil {
		return nil, err
	}
	infos, err := plugin.Describe(ctx)
	if closed := plugin.Close(ctx); err == nil {
		err = closed
	}
	return infos, err
}

// environment is that of a tool's programs.
func (p *Pool) environment(name string) []string {
	if held := p.Profiles[name]; held != nil {
		return contained(held, p.Env[name])
	}
	return Environment(p.Env[name])
}

// program returns the program behind a tool. Its key is all that makes two
// processes differ.
func (p *Pool) program(d *Definition) (*program, error) {
	if boxed(d) { // what it may reach and whose secrets it has are its own
		return p.share("container\x00"+d.Name, d, &program{name: imageName(d), image: true, launch: p.Boxes.launch(p, d)}), nil
	}
	if err := p.held(d); err != nil {
		return nil, err
	}
	start, err := p.start(d)
	if err != nil {
		return nil, err
	}
	held, err := json.Marshal(start.Profile)
	if err != nil {
		return nil, fmt.Errorf("tool %q: its sandbox: %w", d.Name, err)
	}
	key := strings.Join(slices.Concat(start.Argv, []string{"", start.Sha256, string(held), ""}, start.Env), "\x00")
	foreign := d.Spec.Source.Plugin != nil
	launch := func(ctx context.Context) (host.Options, error) {
		if foreign && p.Fence != nil {
			if err := p.Fence(ctx); err != nil {
				return host.Options{}, err
			}
		}
		return host.Options{Launch: p.Launcher.PluginRunner(start)}, nil
	}
	return p.share(key, d, &program{name: start.Argv[0], launch: launch}), nil
}

// start is how the program of a plugin, or ours, is started.
func (p *Pool) start(d *Definition) (sandbox.Spec, error) {
	start := sandbox.Spec{Dir: "/", Profile: p.Profiles[d.Name], Fresh: d.Spec.Isolation.Fresh}
	if s := d.Spec.Source.Plugin; s != nil {
		start.Dir, start.Argv, start.Sha256 = dir(start.Profile, p.Dir), s.Command, s.SHA256
	} else {
		path, err := p.shipped()
		if err != nil {
			return sandbox.Spec{}, err
		}
		start.Argv, start.Tidy = []string{path}, true
	}
	start.Env = p.environment(d.Name)
	return start, nil
}

// share returns the program of a key, which is this one if there is none yet,
// and makes the tool one of its own.
func (p *Pool) share(key string, d *Definition, made *program) *program {
	p.mu.Lock()
	defer p.mu.Unlock()
	prog := p.programs[key]
	if prog == nil {
		prog, made.pool, made.functions = made, p, map[string]string{}
		p.programs[key] = prog
	}
	if !slices.Contains(prog.tools, d.Name) {
		prog.tools = append(prog.tools, d.Name)
		prog.functions[d.Name] = d.function()
	}
	return prog
}

// start starts the program unless it runs; after too many crashes it does not.
func (g *program) start(ctx context.Context) *started {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current != nil {
		return g.current
	}
	run := &started{ready: make(chan struct{})}
	g.current = run
	before := g.starts
	g.starts++
	g.pool.starting.Go(func() {
		defer close(run.ready)
		if before > 0 {
			select {
			case <-g.pool.After(backOff(before)):
			case <-ctx.Done():
				run.err = context.Cause(ctx)
				return
			}
		}
		run.plugin, run.err = g.begin(ctx)
	})
	return run
}

// begin starts one process.
func (g *program) begin(ctx context.Context) (*host.Plugin, error) {
	o, err := g.launch(ctx)
	if err != nil {
		return nil, err
	}
	o.Name = g.name
	plugin, err := host.Start(ctx, o)
	if err != nil {
		err = fmt.Errorf("start plugin %s (tools: %s): %w", g.name, strings.Join(g.tools, ", "), err)
		return nil, wrapped(err, g.startHint())
	}
	return plugin, nil
}

// inSight is what a program in a sandbox sees of the host's programs.
const inSight = "its own file, /usr, and what spec.isolation.mounts of the Tool names (an interpreter elsewhere, for example)"

// startHint says what to do about a program that does not start.
func (g *program) startHint() string {
	path := g.name
	if g.image {
		return "see that the program of the image serves as a plugin; one that is started for each call has spec.source.container.protocol: Exec"
	}
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "there is no such file: build or install the program, or mend spec.source.plugin.command of the Tool, which counts from its manifest"
	} else if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
		return "the file cannot be run: make it executable (chmod +x), or name the program in spec.source.plugin.command of the Tool"
	}
	return "try it with agentctl plugin test " + path + " --isolation Sandbox; in a sandbox it sees " + inSight
}

func (g *program) wait(ctx context.Context) (*started, error) {
	run := g.start(ctx)
	select {
	case <-run.ready:
		return run, run.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// crashed forgets a process that died, so that the next call starts another.
func (g *program) crashed(run *started) (again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.starts >= maxStarts {
		return false
	}
	if g.current == run {
		g.current = nil
	}
	return true
}

// pluginServer asks a running plugin.
type pluginServer struct {
	program *program
	run     *started
}

// Call implements Server. A plugin that dies under a call makes it an error
// result: what the call did is unknown and is never repeated unasked.
func (s *pluginServer) Call(ctx context.Context, req Request, progress func(string)) (Reply, error) {
	s.run.reminded.Do(func() { s.remind(ctx, req) })
	result, err := s.run.plugin.Call(ctx, host.CallRequest{
		Tool: req.Tool, Args: req.Args, ID: req.Call, Message: req.Message, Run: req.Run, Session: req.Run, Agent: req.Agent,
		Workspace: req.Workspace, Hidden: req.Hidden, Outside: req.outside(), Key: req.Key, Timeout: req.Timeout, MaxOutput: maxExecOutput,
		Ask: s.asker(req.Call), History: s.program.pool.History,
	}, func(e host.Event) {
		if e.Progress != "" {
			progress(e.Progress)
		}
	})
	switch {
	case err == nil:
		return reply(result), nil
	case ctx.Err() != nil && result != nil:
		return reply(result), err
	case ctx.Err() != nil:
		return Reply{}, err
	case !s.program.crashed(s.run):
		return Reply{}, reason.New(reason.ToolError, "plugin %s died %d times: %w", s.program.name, maxStarts, err)
	}
	return Reply{Output: fmt.Sprintf("the tool's program died during the call: %v; what the call did until then may or may not have happened", err), Failed: true, Code: message.CodeTool, Writes: true}, nil
}

// asker asks for a call, or is nil where no person can be asked.
func (s *pluginServer) asker(call string) func(context.Context, host.Question) (string, error) {
	ask := s.program.pool.Ask
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, q host.Question) (string, error) { return ask(ctx, call, q) }
}

// remindTime bounds the telling of the past.
const remindTime = 5 * time.Second

// remind tells a process the past of its tools. One that cannot be told knows
// less, and so refuses more; whether it is alive its first call will show.
func (s *pluginServer) remind(ctx context.Context, req Request) {
	pool := s.program.pool
	if pool.Past == nil {
		return
	}
	var answers []host.Answer
	past := pool.Past()
	pool.mu.Lock()
	for _, p := range past {
		if function, ok := s.program.functions[p.Tool]; ok && len(p.Metadata) > 0 {
			answers = append(answers, host.Answer{Tool: function, Metadata: p.Metadata})
		}
	}
	pool.mu.Unlock()
	if len(answers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, remindTime)
	defer cancel()
	_ = s.run.plugin.Recall(ctx, req.Run, req.Workspace, answers)
}

func reply(r *host.CallResult) Reply {
	out := Reply{
		Output: r.Text, ExitCode: r.ExitCode, Signal: r.Signal, Title: r.Title, Metadata: r.Metadata,
		Writes: r.Writes, Failed: r.IsError, Dropped: r.Dropped,
	}
	if r.IsError {
		out.Code = errorCode(r.Code)
	}
	return out
}

// errorCode takes only those codes from a program that speak of its own doing:
// a program cannot claim that the policy denied a call.
func errorCode(code string) message.ErrorCode {
	own := []message.ErrorCode{message.CodeTimeout, message.CodeCancelled, message.CodeSchema, message.CodeOutputLimit}
	if c := message.ErrorCode(code); slices.Contains(own, c) {
		return c
	}
	return message.CodeTool
}

// closeTime bounds the end of all processes together.
const closeTime = 3 * time.Second

// Close ends every process and waits for it.
func (p *Pool) Close() error {
	p.starting.Wait() // each start has its own deadline and ends with its context
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	var wg sync.WaitGroup
	errs := make(chan error, len(p.programs))
	for _, g := range p.programs {
		if g.current == nil || g.current.plugin == nil {
			continue
		}
		wg.Go(func() { errs <- g.current.plugin.Close(ctx) })
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}
