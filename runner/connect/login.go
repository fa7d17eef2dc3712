package connect

import (
	"context"
	"time"

	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// Person is somebody who can log in.
type Person = oauth.Person

// Visit is a page to log in at.
type Visit = oauth.Visit

// LoggedIn is what came of a login.
type LoggedIn = mcp.LoggedIn

// Login is a login that is kept, without its tokens.
type Login = oauth.Login

// LoginValid is the state of a login that runs can use.
const LoginValid = oauth.Valid

// LogIn has a person log in at the server of a Tool, and keeps the login for runs with the
// same state folder. Its errors are those of UseTool; CredentialRejected where the login
// has failed.
func LogIn(ctx context.Context, o ToolOptions, person Person) (in *LoggedIn, err error) {
	err = UseTool(ctx, o, func(ctx context.Context, p *tool.Pool, d *tool.Definition, _ func([]byte) []byte) error {
		in, err = mcp.Login(ctx, p, d, person)
		return err
	})
	return in, err
}

// Logins are the logins that a state folder keeps, without their tokens.
func Logins(state string) ([]Login, error) {
	state, err := statedir.Find(state)
	if err != nil {
		return nil, err
	}
	return oauth.Logins(keys.LoginsOf(state), time.Now())
}

// LogOut forgets the logins of a tool by its call name, only those at a server if its URL
// is given, and gives the tokens back where the authorization server takes them. left is
// why a token could not be given back.
func LogOut(ctx context.Context, state, tool, server string) (gone []Login, left []error, err error) {
	if state, err = statedir.Find(state); err != nil {
		return nil, nil, err
	}
	return oauth.Logout(ctx, keys.LoginsOf(state), tool, server, time.Now())
}
