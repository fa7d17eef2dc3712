package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// PoolOptions are what a Pool needs.
type PoolOptions struct {
	// Kinds are those that the pool can open.
	Kinds    Kinds
	Launcher *sandbox.Launcher
	// After is the clock by which a crashed program waits before it is started
	// again; nil is time.After.
	After func(time.Duration) <-chan time.Time
}

// Pool opens the sources of the tools of one run, and keeps their processes. Tools of
// the same program with the same environment share a process; it is started once, in
// the background, and started again after a crash.
type Pool struct {
	PoolOptions
	// Dir is the working folder of the plugins: the root of the run's files. It
	// exists before all the files do. The shipped program needs none.
	Dir string
	// Env holds the declared variables of each tool as NAME=value, by call name.
	Env map[string][]string
	// Profiles are the containment of each tool, by call name; a tool without a
	// profile is not contained.
	Profiles map[string]*spec.Profile
	// Fence waits until contained programs can no longer do to the files of the
	// run what they must not; foreign plugins are started after it. Optional.
	Fence func(context.Context) error
	// Containerd and State are where containers are started and what is kept of them;
	// Run is the id that they are labelled with.
	Containerd, State, Run string
	// Unseen are folders of which no tool may see anything.
	Unseen []string
	// Guard returns the files of the run that no program may change, and those that
	// none may read, as absolute paths. It waits until the files are there.
	Guard func(context.Context) (readOnly, masked []string, err error)
	// Egress serves the network of tools that reach what a list allows, where their
	// source brings its own isolation.
	Egress func(ctx context.Context, l net.Listener, tools, allow []string)
	// Pins are the known descriptions of tools, by call name, as Pin returns
	// them; for a tool without a pin, the first description counts. A call whose
	// program describes the tool differently is refused. The map belongs to the
	// pool.
	Pins map[string]string
	// Past returns the calls of the run that have completed, the oldest first. A
	// process that is started in the middle of a run, by a resume or after a
	// crash, gets those of its own tools before its first call, so that it knows
	// what the process before it knew. Past is called from the goroutine of a
	// call. Optional.
	Past func() []Past
	// Ask puts a question of a tool, in the call of that id, to the person
	// behind the run. Question and answer are reported as progress of the call,
	// and so are in the journal. Nil: there is no person to ask.
	Ask func(ctx context.Context, call string, q host.Question) (string, error)
	// History returns the newest messages of the run, at most that many unless it
	// is 0, the oldest of them first, and without secrets. Nil: tools get none.
	History func(ctx context.Context, most int) ([]host.Message, error)

	mu        sync.Mutex
	processes map[string]*Process
	starting  sync.WaitGroup

	opening sync.Mutex
	sources map[string]Source
}

// Past is a call that has completed: its tool, by call name, and the metadata
// of its result as it is in the journal.
type Past struct {
	Tool     string
	Metadata json.RawMessage
}

// NewPool returns a pool without processes. Close it.
func NewPool(o PoolOptions) *Pool {
	if o.After == nil {
		o.After = time.After
	}
	return &Pool{PoolOptions: o, processes: map[string]*Process{}, sources: map[string]Source{}}
}

// source returns what starts the programs of a tool.
func (p *Pool) source(d *Definition) (Source, error) {
	kind, ok := p.Kinds.Of(d.Kind)
	if !ok || kind.Open == nil {
		return nil, cmp.Or(Unsupported(d), error(reason.New(reason.Internal, "tool %q: no source is known", d.Name)))
	}
	return p.open(kind), nil
}

func (p *Pool) open(kind *Kind) Source {
	p.opening.Lock()
	defer p.opening.Unlock()
	s := p.sources[kind.Name]
	if s == nil {
		s = kind.Open(p)
		p.sources[kind.Name] = s
	}
	return s
}

// Require refuses tools that this host cannot contain as they demand, before
// anything has run. A source with its own isolation has a method Require; it is
// also asked about tools of other kinds that demand its level.
func (p *Pool) Require(ctx context.Context, tools []Definition) error {
	for i := range tools {
		d := &tools[i]
		for j := range p.Kinds {
			kind := &p.Kinds[j]
			if kind.Open == nil || kind.Level == "" || d.Kind != kind.Name && d.Spec.Isolation.Minimum != kind.Level {
				continue
			}
			if s, ok := p.open(kind).(interface {
				Require(ctx context.Context, d *Definition) error
			}); ok {
				if err := s.Require(ctx, d); err != nil {
					return err
				}
			}
		}
	}
	return p.Contain(tools)
}

// Contain refuses tools that no sandbox of this host can contain as they demand, and
// those that this version cannot start.
func (p *Pool) Contain(tools []Definition) error {
	for i := range tools {
		d := &tools[i]
		if err := Unsupported(d); err != nil {
			return err
		}
		if d.Contained() || d.Host {
			continue
		}
		if err := p.Launcher.Require(d.Name, d.Spec.Isolation.Minimum, d.Spec.Network.Mode); err != nil {
			return err
		}
	}
	return nil
}

// Start begins to start the programs of the tools that stay while the run executes. It
// does not wait for them.
func (p *Pool) Start(ctx context.Context, tools []Definition) {
	for i := range tools {
		if s, err := p.source(&tools[i]); err == nil && !tools[i].Host {
			s.Start(ctx, &tools[i])
		}
	}
}

// StartShipped starts the program of the shipped tools ahead of everything
// else: it is trusted, takes longest to be ready, and does nothing before its
// first call. Tools that declare variables are left out; their values are not
// known yet.
func (p *Pool) StartShipped(ctx context.Context, tools []Definition) {
	for i := range tools {
		if d := &tools[i]; d.Shipped != "" && !d.Host && len(d.Spec.Env) == 0 {
			p.Start(ctx, tools[i:i+1])
			return
		}
	}
}

// Begin prepares what calls will need, while the first model request runs. The
// work ends with its context. A source with such work has a method Begin.
func (p *Pool) Begin(ctx context.Context, tools []Definition) {
	begun := map[string]bool{}
	for i := range tools {
		s, err := p.source(&tools[i])
		if err != nil || begun[tools[i].Kind] {
			continue
		}
		begun[tools[i].Kind] = true
		if s, ok := s.(interface {
			Begin(ctx context.Context, tools []Definition)
		}); ok {
			of := func(d Definition) bool { return d.Kind != tools[i].Kind }
			s.Begin(ctx, slices.DeleteFunc(slices.Clone(tools), of))
		}
	}
}

// Sandboxed refuses a tool that must be contained by a sandbox and has no
// profile, where others have one.
func (p *Pool) Sandboxed(d *Definition) error {
	if p.Profiles == nil || p.Profiles[d.Name] != nil || d.Spec.Isolation.Minimum == v1alpha1.IsolationNone {
		return nil
	}
	return reason.New(reason.IsolationUnavailable, "tool %q: nobody has said how it is contained", d.Name)
}

// Serve returns the server of a tool and waits until it is ready.
func (p *Pool) Serve(ctx context.Context, d *Definition, beyond Outside) (Server, error) {
	s, err := p.source(d)
	if err != nil {
		return nil, err
	}
	return s.Serve(ctx, d, beyond)
}

// Functions are what the program of a tool serves by its own description.
func (p *Pool) Functions(ctx context.Context, d *Definition) ([]Function, error) {
	s, err := p.source(d)
	if err != nil {
		return nil, err
	}
	return s.Describe(ctx, d)
}

// Describe asks the program of a tool for its parameters, for a manifest
// without them.
func (p *Pool) Describe(ctx context.Context, d *Definition) error {
	found, err := p.Functions(ctx, d)
	if err != nil {
		return WithHint(fmt.Errorf("tool %q: ask the plugin what it takes: %w", d.Name, err), "write spec.parameters of the Tool")
	}
	if err := p.unchanged(d, found); err != nil {
		return err
	}
	var names []string
	for _, f := range found {
		if f.Name == d.function() {
			d.Parameters = f.Parameters
			if d.Description == "" {
				d.Description = f.Description
			}
			return nil
		}
		names = append(names, f.Name)
	}
	return reason.New(reason.ToolError, "tool %q: the plugin has no function %q; it has: %s", d.Name, d.function(), strings.Join(names, ", ")).
		WithHint("set spec.source.plugin.tool of the Tool")
}

// WithHint keeps the reason of an error that has one. An error without a reason
// is the tool's fault and gets the hint.
func WithHint(err error, hint string) error {
	if reason.Of(err) != reason.Internal {
		return err
	}
	return reason.New(reason.ToolError, "%w", err).WithHint("%s", hint)
}

// Environment is that of a tool's programs on this host.
func (p *Pool) Environment(name string) []string {
	if held := p.Profiles[name]; held != nil {
		return contained(held, p.Env[name])
	}
	return Environment(p.Env[name])
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
	errs := make(chan error, len(p.processes))
	for _, g := range p.processes {
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

// Opened reports whether the source of a level of isolation has been opened, which may
// hold something on this host even when no process of it runs.
func (p *Pool) Opened(level v1alpha1.IsolationLevel) bool {
	p.opening.Lock()
	defer p.opening.Unlock()
	return slices.ContainsFunc(p.Kinds, func(k Kind) bool { return k.Level == level && p.sources[k.Name] != nil })
}

// Release lets go of what the sources hold on this host, when every process has ended.
func (p *Pool) Release() error {
	p.opening.Lock()
	defer p.opening.Unlock()
	var errs []error
	for _, s := range p.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
