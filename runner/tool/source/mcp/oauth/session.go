package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"agentctl.dev/agentctl/api/reason"
)

// session implements grant by the login that a person has made before the run. It never
// waits for a person. Runs that use the same login renew it one after the other.
type session struct {
	Options
	at     *url.URL
	shelf  shelf
	client *http.Client

	turn turn
	// login is the newest that was read; nil: none was.
	login *kept
}

func newSession(o Options, at *url.URL) (*session, error) {
	if o.Store == nil {
		return nil, reason.New(reason.CredentialMissing, "tool %q: %s: no folder keeps logins here", o.Tool, o.field())
	}
	return &session{
		Options: o, at: at, shelf: newShelf(o.Store, o.Server), client: newClient(at, o.Server.Auth.AuthorizationCode.Issuer), turn: make(turn, 1),
	}, nil
}

// LoggedIn reports whether the login of a server is kept, whatever its state.
func LoggedIn(o Options) bool {
	if o.Server.Auth.AuthorizationCode == nil {
		return true
	}
	if o.Store == nil {
		return false
	}
	k, err := newShelf(o.Store, o.Server).read()
	return err == nil && k != nil
}

// read takes the login as it is kept now, and hides its secrets.
func (s *session) read() error {
	k, err := s.shelf.read()
	if err != nil || k == nil {
		return err
	}
	for _, value := range k.secrets() {
		s.Learn(value)
	}
	s.login = k
	return nil
}

// current implements grant.
func (s *session) current(ctx context.Context) (string, error) {
	if err := s.turn.take(ctx); err != nil {
		return "", err
	}
	defer s.turn.pass()
	if s.login == nil {
		if err := s.read(); err != nil || s.login == nil {
			return "", err // the server may need none
		}
	}
	if s.login.usable(s.Now()) {
		return s.login.Access, nil
	}
	return s.renew(ctx, s.login.Access)
}

// next implements grant.
func (s *session) next(ctx context.Context, used string, status int, challenges []oauthex.Challenge) (string, error) {
	if err := s.turn.take(ctx); err != nil {
		return "", err
	}
	defer s.turn.pass()
	if s.login == nil {
		if err := s.read(); err != nil {
			return "", err
		}
	}
	switch {
	case s.login == nil:
		return "", reason.New(reason.CredentialMissing, "tool %q: %s: nobody has logged in at the server %s", s.Tool, s.field(), s.at.Host).WithHint("%s", s.again())
	case s.login.usable(s.Now()) && s.login.Access != used: // another request was first
		return s.login.Access, nil
	case status == http.StatusForbidden:
		return "", s.lacks(ctx, demanded(challenges))
	}
	return s.renew(ctx, used)
}

// again names the command that helps.
func (s *session) again() string {
	return fmt.Sprintf("run: agentctl auth login %s -f FILE, with the manifests of this run", s.Tool)
}

// lacks is the error of a call that needs more scopes than the login has. The next login
// asks for them, unless the manifest names the scopes.
func (s *session) lacks(ctx context.Context, scopes []string) error {
	if len(s.Server.Auth.AuthorizationCode.Scopes) > 0 {
		return fmt.Errorf("the scopes %q of the login are not sufficient, and %s.scopes names no more", strings.Join(s.login.Scopes, " "), s.field())
	}
	wanted := union(s.login.Wanted, scopes)
	err := s.change(ctx, func(k *kept) error {
		k.Wanted = union(k.Wanted, wanted)
		return s.shelf.write(k)
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("the scopes of the login are not sufficient: the server wants %q: %s", clean(strings.Join(wanted, " ")), s.again())
}

// change changes the kept login while no other process does.
func (s *session) change(ctx context.Context, do func(*kept) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	unlock, err := s.shelf.logins.Lock(limited, s.shelf.name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.read(); err != nil {
		return err
	}
	return do(s.login)
}

// renew obtains another token with the refresh token, unless another run has done so
// meanwhile. The caller has the turn.
func (s *session) renew(ctx context.Context, used string) (token string, err error) {
	err = s.change(ctx, func(k *kept) error {
		if k.Access != used && k.usable(s.Now()) {
			return nil
		}
		if k.Ended != "" {
			return s.over(k.Ended)
		}
		if k.Refresh == "" {
			return s.over("its token has expired, and the authorization server has given nothing to renew it with")
		}
		got, err := s.refresh(ctx, k)
		if err != nil {
			return err
		}
		k.take(got)
		for _, value := range k.secrets() {
			s.Learn(value)
		}
		return s.shelf.write(k)
	})
	if err != nil {
		return "", err
	}
	return s.login.Access, nil
}

// over is the error of a login that holds no longer.
func (s *session) over(why string) error {
	return reason.New(reason.CredentialRejected, "tool %q: %s: the login at %s has ended: %s", s.Tool, s.field(), hostOf(s.login.Issuer), why).WithHint("%s", s.again())
}

// secretFor is the client's secret that a renewal sends: that of a registered client, or
// that of the manifest where a login would send it. The MCP server may have chosen where
// the login was made.
func (s *session) secretFor(k *kept) (string, error) {
	if k.Registered || s.Secret == "" {
		return k.ClientSecret, nil
	}
	at := origin{at: s.at, issuer: s.Server.Auth.AuthorizationCode.Issuer, field: s.field(), secret: true}
	_, err := at.choose([]string{k.Issuer})
	if err == nil {
		err = at.issues(k.Issuer, k.TokenURL)
	}
	if err != nil {
		return "", reason.New(reason.CredentialRejected, "tool %q: %s: renew the login at %s: %w", s.Tool, s.field(), hostOf(k.Issuer), err).WithHint("%s", s.again())
	}
	return s.Secret, nil
}

// refresh asks the authorization server for another token. The library has the grant only
// without the resource, which the specification demands: the grant of client credentials
// sends both.
func (s *session) refresh(ctx context.Context, k *kept) (*oauth2.Token, error) {
	limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	secret, err := s.secretFor(k)
	if err != nil {
		return nil, err
	}
	grant := clientcredentials.Config{
		ClientID: k.ClientID, ClientSecret: secret, TokenURL: k.TokenURL, AuthStyle: k.style(),
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}, "resource": {k.Resource}},
	}
	got, err := grant.Token(context.WithValue(limited, oauth2.HTTPClient, s.client))
	if err == nil {
		err = usableToken(got)
	}
	if err == nil {
		return got, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if cause := context.Cause(limited); cause != nil {
		err = cause
	}
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		text := spoken(said, append(k.secrets(), s.Secret)...)
		if refuses(said) {
			k.Ended, k.Access, k.Refresh = text, "", ""
			if err := s.shelf.write(k); err != nil {
				return nil, err
			}
			return nil, s.over(text)
		}
		err = errors.New(text)
	}
	return nil, reason.New(reason.ToolError, "tool %q: %s: renew the login at %s: %w", s.Tool, s.field(), hostOf(k.Issuer), err).WithHint("try again, or %s", s.again())
}

// reject implements grant.
func (s *session) reject(ctx context.Context, status int) error {
	if err := s.turn.take(ctx); err != nil {
		return err
	}
	defer s.turn.pass()
	if s.login == nil {
		return fmt.Errorf("the server refuses a request without a token: status %d", status)
	}
	return s.over(fmt.Sprintf("the server refuses its token: status %d", status))
}

// hostOf is the host of a URL as it is shown.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	return clean(u.Host)
}
