// Package mcp is the source of Model Context Protocol servers: programs of this host that speak it on standard input and output, and servers at a URL.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// Kind describes spec.source.mcp.
func Kind() tool.Kind {
	return tool.Kind{Name: "mcp", Facts: facts, Open: open}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	m := s.Source.MCP
	f := tool.Facts{Describes: true, TrustHints: m.TrustAnnotations}
	switch {
	case m.Stdio != nil:
		f.Command, f.CommandField = tool.Command(m.Stdio.Command), "stdio.command"
	case m.Container != nil: // its sockets may be on the disk of the run's files
		f.Image, f.Level, f.WritesDisk = m.Container.Image, v1alpha1.IsolationContainer, true
	case m.HTTP != nil:
		at, err := url.Parse(m.HTTP.URL)
		if err != nil || at.Host == "" {
			f.Remote = m.HTTP.URL
			return f, fmt.Errorf("spec.source.mcp.http.url: %q names no server", m.HTTP.URL)
		}
		f.Remote = at.Host
		for i, h := range m.HTTP.Headers {
			f.Secrets = append(f.Secrets, tool.Secret{Name: h.Name, Field: fmt.Sprintf("spec.source.mcp.http.headers[%d]", i), From: h.ValueFrom})
		}
		if a := m.HTTP.Auth; a != nil {
			f.Secrets, f.Obtains = append(f.Secrets, secrets(a)...), true
			for _, wrong := range oauth.Exposed(m.HTTP) {
				f.Faults = append(f.Faults, tool.Fault(wrong))
			}
		}
	}
	return f, nil
}

// secrets are what is resolved to obtain the access tokens of a server.
func secrets(a *v1alpha1.MCPAuth) []tool.Secret {
	const field = "spec.source.mcp.http.auth."
	switch {
	case a.ClientCredentials != nil:
		return []tool.Secret{{Name: oauth.ClientSecret, Field: field + "clientCredentials.clientSecret", From: a.ClientCredentials.ClientSecret.ValueFrom}}
	case a.AuthorizationCode != nil && a.AuthorizationCode.ClientSecret != nil:
		return []tool.Secret{{Name: oauth.ClientSecret, Field: field + "authorizationCode.clientSecret", From: a.AuthorizationCode.ClientSecret.ValueFrom}}
	}
	return nil
}

// source keeps a connection to each server of a run.
type source struct {
	pool  *tool.Pool
	cache cache
	// person can log in; nil: nobody is asked, as in every run.
	person *oauth.Person

	mu      sync.Mutex
	servers map[string]*server
	// once are connections for one call each.
	once sync.WaitGroup
}

func open(p *tool.Pool) tool.Source {
	return &source{pool: p, cache: cache{dir: cacheDir(p.Options().Site.Options().State)}, servers: map[string]*server{}}
}

// server is the connection that the functions of a Tool share.
func (s *source) server(d *tool.Definition) *server {
	dial := s.dialer(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.servers[d.Program()]
	if at == nil {
		at = &server{source: s, tool: d.Program(), dial: dial}
		s.servers[d.Program()] = at
	}
	return at
}

// Start implements tool.Source.
func (s *source) Start(ctx context.Context, d *tool.Definition) {
	if !d.Spec.Isolation.Fresh {
		s.server(d).start(ctx)
	}
}

// Known are the functions that the same server described in an earlier run.
func (s *source) Known(d *tool.Definition) ([]tool.Function, bool) {
	if auth := s.auth(d); auth != nil && !oauth.LoggedIn(s.authorization(d)) {
		return nil, false // to ask it says what is missing, before the model is asked
	}
	found, ok := s.cache.read(d)
	if !ok {
		return nil, false
	}
	s.leftOut(d, found.LeftOut)
	return found.Functions, true
}

// Describe implements tool.Source. A contained server is asked in a sandbox of its own
// that shows no files of the run and has no network: the policy has not yet decided what
// it may see. It has its variables, without which many servers do not start.
func (s *source) Describe(ctx context.Context, d *tool.Definition) ([]tool.Function, error) {
	l, err := s.asked(ctx, d)
	if err != nil {
		return nil, err
	}
	found, err := l.functions(ctx)
	if s.alone(d) {
		l.close()
	}
	if err != nil {
		return nil, err
	}
	found = compilable(found)
	s.cache.write(d, found)
	s.leftOut(d, found.LeftOut)
	return found.Functions, nil
}

// auth is how the tokens for the server of a Tool are obtained; nil: it has none.
func (s *source) auth(d *tool.Definition) *v1alpha1.MCPAuth {
	if at := d.Spec.Source.MCP.HTTP; at != nil {
		return at.Auth
	}
	return nil
}

// alone reports whether a server is asked in a process of its own before the run uses it.
func (s *source) alone(d *tool.Definition) bool {
	return d.Contained() || d.Remote == "" && s.pool.Profile(d.Program()) != nil
}

func (s *source) asked(ctx context.Context, d *tool.Definition) (*link, error) {
	if !s.alone(d) {
		return s.server(d).ready(ctx)
	}
	if d.Contained() {
		return s.image(d, blindfolded(d))(ctx)
	}
	if err := s.pool.Sandboxed(d); err != nil {
		return nil, err
	}
	return s.stdio(d, blind(s.pool.Profile(d.Program())), true)(ctx)
}

// Serve implements tool.Source. A call that may use paths outside the workspace, or wants
// a fresh server, gets one of its own, which ends with the call.
func (s *source) Serve(ctx context.Context, d *tool.Definition, beyond tool.Outside) (tool.Server, error) {
	if one, ok := s.ownImage(d, beyond); ok {
		return tool.Once(&single{s, d, s.image(d, one)}), nil
	}
	if d.Remote == "" && !d.Contained() {
		if err := s.pool.Sandboxed(d); err != nil {
			return nil, err
		}
		if seen := s.pool.Showing(d, beyond); seen != nil {
			return tool.Once(&single{s, d, s.stdio(d, seen, true)}), nil
		}
	}
	if d.Remote == "" && d.Spec.Isolation.Fresh {
		return &single{s, d, s.dialer(d)}, nil
	}
	at := s.server(d)
	l, err := at.ready(ctx)
	if err == nil {
		err = l.unchanged(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	return &shared{at, l}, nil
}

// dialer returns what connects to the server of a Tool.
func (s *source) dialer(d *tool.Definition) dialer {
	switch {
	case d.Remote != "":
		return s.http(d)
	case d.Contained():
		return s.image(d, packed(d))
	}
	return s.stdio(d, s.pool.Profile(d.Program()), d.Spec.Isolation.Fresh)
}

// End closes every connection, so that servers end by themselves where they can.
func (s *source) End() {
	s.mu.Lock()
	servers := s.servers
	s.servers = map[string]*server{}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, at := range servers {
		all.Go(at.end)
	}
	all.Wait()
}

// Close implements tool.Source. Processes have ended.
func (s *source) Close() error {
	s.End()
	s.once.Wait()
	return nil
}

// errEnded is the error of a call that comes when the run ends.
var errEnded = errors.New("the connection is closed")
