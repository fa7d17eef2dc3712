package mcp

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// LoggedIn is a login that a person has made.
type LoggedIn struct {
	oauth.Login
	// Functions is how many the server offers with it.
	Functions int `json:"functions"`
}

// Login has a person log in at the server of a Tool, and asks the server with the token.
// The login is kept for runs.
func Login(ctx context.Context, p *tool.Pool, d *tool.Definition, person oauth.Person) (*LoggedIn, error) {
	if !Interactive(d) {
		return nil, reason.Usagef("tool %q declares no spec.source.mcp.http.auth.authorizationCode: there is nothing to log in at", d.Program())
	}
	s := &source{pool: p, servers: map[string]*server{}, person: &person}
	at, headers, tokens, err := s.remote(d)
	if err != nil {
		return nil, err
	}
	l, err := s.dial(d, at, headers, tokens)(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	found, err := l.functions(ctx)
	if err != nil {
		return nil, err
	}
	kept, asked := tokens.Login(time.Now())
	if !asked {
		return nil, reason.Usagef("the server %s asks for no login: it has answered without a token", at.Host).
			WithHint("remove spec.source.mcp.http.auth from the Tool")
	}
	return &LoggedIn{Login: kept, Functions: len(found.Functions)}, nil
}

// Interactive reports whether a Tool needs the login of a person.
func Interactive(d *tool.Definition) bool {
	m := d.Spec.Source.MCP
	return m != nil && m.HTTP != nil && m.HTTP.Auth != nil && m.HTTP.Auth.AuthorizationCode != nil
}
