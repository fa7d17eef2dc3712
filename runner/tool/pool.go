package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// PoolOptions are what a Pool is made of. Site is required.
type PoolOptions struct {
	Site *Site
	// Run is the id that containers are labelled with.
	Run string
	// Dir is the working folder of the plugins: the root of the run's files. It
	// exists before all the files do. The shipped program needs none.
	Dir string
	// Env holds the declared variables of each tool as NAME=value, by call name.
	Env map[string][]string
	// Secrets are what sources need besides, by call name and their own name.
	Secrets map[string]map[string]string
	// Learn is called with each further secret that a source is given during the run,
	// before it uses it: the value is removed from all that is written. Nil: a source that
	// would be given one is not used.
	Learn func(value string)
	// Reveals reports whether a text holds a secret of the run. A function that its program
	// describes with one is left out. Nil: there are no secrets.
	Reveals func(text []byte) bool
	// LeftOut is called with the functions that the program of a Tool describes and that are
	// offered to no model, whenever it was asked, by the Tool's call name. Nil: nobody asks.
	LeftOut func(of string, all []Omission)
	// Profiles are the containment of each tool, by call name; a tool without a
	// profile is not contained. Nil: this host contains nothing.
	Profiles map[string]*spec.Profile
	// Guard returns the files of the run that no program may change, and those that
	// none may read, as absolute paths. It waits until it is in force: a contained
	// program that is not shipped is started after it. Nil: no file is guarded.
	Guard func(context.Context) (readOnly, masked []string, err error)
	// Pins are the known descriptions of tools, by call name, as Pin returns
	// them; for a tool without a pin, the first description counts. A call whose
	// program describes the tool differently is refused.
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
	// Begun are processes that another pool has begun to start.
	Begun *Begun
	// After is the clock by which a crashed program waits before it is started
	// again; nil is time.After.
	After func(time.Duration) <-chan time.Time
}

// Pool opens the sources of the tools of one run, and keeps their processes. Tools of
// the same program with the same environment share a process; it is started once, in
// the background, and started again after a crash. Its options do not change.
type Pool struct {
	o PoolOptions

	mu        sync.Mutex
	processes map[string]*Process
	pins      map[string]string
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

// NewPool returns a pool without processes besides those that were begun. Close it.
func NewPool(o PoolOptions) *Pool {
	if o.After == nil {
		o.After = time.After
	}
	p := &Pool{o: o, processes: map[string]*Process{}, pins: map[string]string{}, sources: map[string]Source{}}
	maps.Copy(p.pins, o.Pins)
	if o.Begun != nil {
		p.adopt(o.Begun)
	}
	return p
}

// Options are those that the pool was made with.
func (p *Pool) Options() PoolOptions { return p.o }

// Launcher starts the programs of this host.
func (p *Pool) Launcher() *sandbox.Launcher { return p.o.Site.o.Launcher }

// Profile is the containment of a tool by its call name; nil for one that is not
// contained.
func (p *Pool) Profile(name string) *spec.Profile { return p.o.Profiles[name] }

// source returns what starts the programs of a tool.
func (p *Pool) source(d *Definition) (Source, error) {
	kind, ok := p.o.Site.o.Kinds.Of(d.Kind)
	if !ok || !kind.startable() {
		return nil, cmp.Or(Unsupported(d), error(reason.New(reason.Internal, "tool %q: no source is known", d.Name)))
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	s := p.sources[kind.Name]
	switch {
	case s != nil:
	case kind.Isolate != nil:
		s = p.o.Site.isolation(kind).Source(p)
	default:
		s = kind.Open(p)
	}
	p.sources[kind.Name] = s
	return s, nil
}

// Start begins to start the programs of the tools that stay while the run executes. It
// does not wait for them.
func (p *Pool) Start(ctx context.Context, tools []Definition) {
	for i := range tools {
		if i > 0 && tools[i].Of != "" && tools[i].Of == tools[i-1].Of { // of one program
			continue
		}
		if s, err := p.source(&tools[i]); err == nil && !tools[i].Host {
			s.Start(ctx, &tools[i])
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
	if p.o.Profiles == nil || d.Remote != "" || p.o.Profiles[d.Program()] != nil || d.Spec.Isolation.Minimum == v1alpha1.IsolationNone {
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

// Several returns the functions of a Tool that provides several. With a pin they must be
// the pinned ones. A source that keeps descriptions of earlier runs has a method Known:
// its program is then asked only if there is none, or it is not the pinned one.
func (p *Pool) Several(ctx context.Context, d *Definition, pin string) ([]Function, error) {
	s, err := p.source(d)
	if err != nil {
		return nil, err
	}
	if keeps, ok := s.(interface {
		Known(d *Definition) ([]Function, bool)
	}); ok {
		if found, ok := keeps.Known(d); ok && (pin == "" || PinAll(d, found) == pin) {
			return found, nil
		}
	}
	found, err := s.Describe(ctx, d)
	if err != nil {
		return nil, WithHint(fmt.Errorf("tool %q: ask its program for its functions: %w", d.Name, err), "check spec.source of the Tool: agentctl get tools shows what is wrong")
	}
	if now := PinAll(d, found); pin != "" && now != pin {
		return nil, reason.New(reason.ToolChanged, "tool %q: its program describes other functions than before: they were %s and are %s", d.Name, pin, now).
			WithHint("bring back the program it was, or apply the Tool again to accept what it is now")
	}
	return found, nil
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
	return HeldEnvironment(p.o.Profiles[name], p.o.Env[name])
}

// closeTime bounds the end of all processes together.
const closeTime = 3 * time.Second

// Close ends every process and waits for it.
func (p *Pool) Close() error {
	p.opening.Lock()
	for _, s := range p.sources {
		if keeps, ok := s.(interface{ End() }); ok { // connections of its own
			keeps.End()
		}
	}
	p.opening.Unlock()
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
