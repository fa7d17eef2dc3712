package tool

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
)

// SiteOptions are what a Site knows about this host.
type SiteOptions struct {
	// Kinds are those whose programs can be started.
	Kinds    Kinds
	Launcher *sandbox.Launcher
	// Containerd and State are where containers are started, and what is kept of them.
	Containerd, State string
	// Unseen are folders of which no tool may see anything.
	Unseen []string
	// Egress serves the network of tools that reach what a list allows, where their
	// source brings its own isolation.
	Egress func(ctx context.Context, l net.Listener, tools, allow []string)
}

// Site is where the programs of one run are started: this host with its sandboxes, and
// what brings an isolation of its own, such as containerd.
type Site struct {
	o SiteOptions

	mu         sync.Mutex
	isolations map[string]Isolation
}

// Isolation contains the programs of a kind of source on one Site. Its methods are called
// by several goroutines.
type Isolation interface {
	// Require refuses a tool that cannot be contained as it demands. It is also asked
	// about tools of other kinds that demand its level.
	Require(ctx context.Context, d *Definition) error
	// Source returns what starts the programs of its kind for a pool.
	Source(p *Pool) Source
	// Close lets go of what it holds on this host. Processes have ended.
	Close() error
}

// NewSite returns a site on which nothing was started. Close it.
func NewSite(o SiteOptions) *Site { return &Site{o: o, isolations: map[string]Isolation{}} }

// Options are those that the site was made with.
func (s *Site) Options() SiteOptions { return s.o }

func (s *Site) isolation(kind *Kind) Isolation {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.isolations[kind.Name]
	if own == nil {
		own = kind.Isolate(s)
		s.isolations[kind.Name] = own
	}
	return own
}

// Require refuses tools that this host cannot contain as they demand, before anything
// has run.
func (s *Site) Require(ctx context.Context, tools []Definition) error {
	for i := range tools {
		d := &tools[i]
		for j := range s.o.Kinds {
			kind := &s.o.Kinds[j]
			if kind.Isolate == nil || d.Level != kind.Level && d.Spec.Isolation.Minimum != kind.Level {
				continue
			}
			if err := s.isolation(kind).Require(ctx, d); err != nil {
				return err
			}
		}
	}
	return s.Contain(tools)
}

// Contain refuses tools that no sandbox of this host can contain as they demand, and
// those that this version cannot start.
func (s *Site) Contain(tools []Definition) error {
	for i := range tools {
		d := &tools[i]
		if err := Unsupported(d); err != nil {
			return err
		}
		if d.Contained() || d.Host || d.Remote != "" {
			continue
		}
		if err := s.o.Launcher.Require(d.Name, d.Spec.Isolation.Minimum, d.Spec.Network.Mode); err != nil {
			return err
		}
	}
	return nil
}

// Opened reports whether a level of isolation is in use, which may hold something on this
// host even when no process runs.
func (s *Site) Opened(level v1alpha1.IsolationLevel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.o.Kinds, func(k Kind) bool { return k.Level == level && s.isolations[k.Name] != nil })
}

// Close lets go of what the site holds on this host, when every process has ended and the
// sources of its pools are closed.
func (s *Site) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, own := range s.isolations {
		errs = append(errs, own.Close())
	}
	return errors.Join(errs...)
}
