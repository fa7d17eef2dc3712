package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/host"
)

// maxStarts is the first start and two more after crashes.
const maxStarts = 3

// BackOff is how long a crashed program waits before it is started again: the
// cause, for example a lack of memory, may pass.
func BackOff(starts int) time.Duration {
	return 100 * time.Millisecond << (2 * (starts - 1)) // 100 ms, 400 ms
}

// Program is a program that speaks the tool protocol, as a source starts it.
type Program struct {
	// Name is what errors call it.
	Name string
	// Launch returns how it is started.
	Launch func(context.Context) (host.Options, error)
	// Hint returns the hint for a program that does not start.
	Hint func() string
}

// Process keeps the process of a program: it is started in the background, shared by
// the tools of the program, and started again after a crash.
type Process struct {
	Program
	pool *Pool
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
	// reminded is done when the process has received the past of the run.
	reminded sync.Once
}

// Process returns the process of a key and adds the tool to it. If there is
// none yet, it is created to run this program. Only the key distinguishes
// processes.
func (p *Pool) Process(key string, d *Definition, made Program) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	proc := p.processes[key]
	if proc == nil {
		proc = &Process{Program: made, pool: p, functions: map[string]string{}}
		p.processes[key] = proc
	}
	if proc.Launch == nil { // another pool has begun it
		proc.Program = made
	}
	if !slices.Contains(proc.tools, d.Name) {
		proc.tools = append(proc.tools, d.Name)
		proc.functions[d.Name] = d.function()
	}
	return proc
}

// Start begins to start the process unless it runs.
func (g *Process) Start(ctx context.Context) { g.start(ctx) }

// Serve returns what answers calls of a tool: the process once it is ready, or, for a
// tool that asks for it, a process of its own for each call.
func (g *Process) Serve(ctx context.Context, d *Definition) (Server, error) {
	if d.Spec.Isolation.Fresh {
		return &freshServer{g, d}, nil
	}
	run, err := g.ready(ctx, d)
	if err != nil {
		return nil, err
	}
	return &pluginServer{g, run}, nil
}

// ServeOnce returns what answers one call of a tool of this process by another program,
// which shows the call more.
func (g *Process) ServeOnce(d *Definition, other Program) Server {
	g.pool.mu.Lock()
	functions := maps.Clone(g.functions)
	g.pool.mu.Unlock()
	return Once(&freshServer{&Process{Program: other, pool: g.pool, tools: []string{d.Name}, functions: functions}, d})
}

// Functions starts a program, asks it for its functions, and ends it.
func (made Program) Functions(ctx context.Context, d *Definition) ([]Function, error) {
	plugin, err := made.begin(ctx)
	if err != nil {
		return nil, explained(err, []string{d.Name})
	}
	infos, err := plugin.Describe(ctx)
	if closed := plugin.Close(ctx); err == nil {
		err = closed
	}
	return functions(infos), err
}

// functions are those that a program describes.
func functions(infos []host.ToolInfo) []Function {
	all := make([]Function, len(infos))
	for i, info := range infos {
		all[i] = Function{Name: info.Name, Description: info.Description, Parameters: info.Parameters}
	}
	return all
}

// ready waits until the process runs and its description is the known one.
func (g *Process) ready(ctx context.Context, d *Definition) (*started, error) {
	run, err := g.wait(ctx)
	if err == nil && d.Shipped == "" {
		err = g.pool.unchanged(d, functions(run.plugin.Tools()))
	}
	return run, err
}

// start starts the program unless it runs; after too many crashes it does not.
func (g *Process) start(ctx context.Context) *started {
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
			case <-g.pool.o.After(BackOff(before)):
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
func (made Program) begin(ctx context.Context) (*host.Plugin, error) {
	o, err := made.Launch(ctx)
	if err != nil {
		return nil, err
	}
	o.Name = made.Name
	plugin, err := host.Start(ctx, o)
	if err != nil {
		return nil, &unstarted{made, err}
	}
	return plugin, nil
}

// unstarted is the error of a program that did not start. The tools that wait for it are
// named when one of them reads it: more may have come meanwhile.
type unstarted struct {
	program Program
	err     error
}

func (e *unstarted) Error() string { return e.err.Error() }

func (e *unstarted) Unwrap() error { return e.err }

// explained adds to the error of a program that did not start its name, the tools that
// wait for it and a hint.
func explained(err error, tools []string) error {
	e, ok := errors.AsType[*unstarted](err)
	if !ok {
		return err
	}
	return WithHint(fmt.Errorf("start plugin %s (tools: %s): %w", e.program.Name, strings.Join(tools, ", "), e.err), e.program.Hint())
}

// explained adds to the error of the process its tools.
func (g *Process) explained(err error) error {
	if err == nil {
		return nil
	}
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	return explained(err, g.tools)
}

func (g *Process) wait(ctx context.Context) (*started, error) {
	run := g.start(ctx)
	select {
	case <-run.ready:
		return run, g.explained(run.err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// crashed forgets a process that ended by itself, so that the next call starts
// another.
func (g *Process) crashed(run *started) (again bool) {
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
	process *Process
	run     *started
}

// Call implements Server. If a plugin dies during a call, the call is an error
// result: its effect is unknown, and it is never repeated without an approval.
func (s *pluginServer) Call(ctx context.Context, req host.CallRequest, progress func(string)) (Reply, error) {
	s.run.reminded.Do(func() { s.remind(ctx, req) })
	req.Ask, req.History = s.asker(req.ID), s.process.pool.o.History
	result, err := s.run.plugin.Call(ctx, req, func(e host.Event) {
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
	case !s.process.crashed(s.run):
		return Reply{}, reason.New(reason.ToolError, "plugin %s died %d times: %w", s.process.Name, maxStarts, err)
	}
	return Reply{Output: fmt.Sprintf("the tool's program died during the call: %v; what the call did until then may or may not have happened", err), Failed: true, Code: message.CodeTool, Writes: true}, nil
}

// asker asks for a call, or is nil where no person can be asked.
func (s *pluginServer) asker(call string) func(context.Context, host.Question) (string, error) {
	ask := s.process.pool.o.Ask
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, q host.Question) (string, error) { return ask(ctx, call, q) }
}

// remindTime bounds the telling of the past.
const remindTime = 5 * time.Second

// remind sends a process the past calls of its tools. A process that does not
// accept them knows less, and so refuses more. An error is ignored: the first
// call will show whether the process still runs.
func (s *pluginServer) remind(ctx context.Context, req host.CallRequest) {
	pool := s.process.pool
	if pool.o.Past == nil {
		return
	}
	var answers []host.Answer
	past := pool.o.Past()
	pool.mu.Lock()
	for _, p := range past {
		if function, ok := s.process.functions[p.Tool]; ok && len(p.Metadata) > 0 {
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
	for _, a := range r.Attachments {
		out.Attachments = append(out.Attachments, Attachment{Name: a.Name, Type: a.Type, Content: a.Data})
	}
	for _, p := range r.Parts {
		out.Parts = append(out.Parts, message.DataPart{Type: p.Type, Data: p.Data})
	}
	out.Variables, out.Record = r.Variables, r.Record
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
