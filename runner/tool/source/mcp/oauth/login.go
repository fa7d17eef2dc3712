package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"agentctl.dev/agentctl/api/reason"
)

// PersonTime bounds how long a login waits for the person.
const PersonTime = 10 * time.Minute

// maxLogins bounds the logins of one command: a server that asks for more scopes each time
// would ask for ever.
const maxLogins = 3

const styleInForm = oauth2.AuthStyleInParams

// Person is somebody who can log in. Visit is required.
type Person struct {
	// Visit shows where to log in.
	Visit func(ctx context.Context, v Visit) error
	// Paste reads the address at which the browser ended. Nil: the browser runs on this
	// machine, and returns by itself.
	Paste func(ctx context.Context) (string, error)
	// Port of the loopback interface to which the browser returns; 0 is any.
	Port int
}

// Visit is a page to log in at.
type Visit struct {
	URL string
	// Issuer is the host that asks for the password, Server the one that the token is for.
	Issuer, Server string
	Scopes         []string
	// Redirect is the address at which the browser ends.
	Redirect string
}

// login implements grant by asking a person.
type login struct {
	Options
	origin origin
	person Person
	shelf  shelf

	turn turn
	// before is the login that was kept earlier; nil: there was none.
	before *kept
	// now is the present login; nil before the first.
	now    *kept
	logins int
}

// Asking returns tokens that are obtained by the login of a person, who is asked when the
// server refuses a request. Each login is kept, for runs to use it.
func Asking(o Options, p Person) (*Tokens, error) {
	at, err := o.check()
	if err != nil {
		return nil, err
	}
	spec := o.Server.Auth.AuthorizationCode
	switch {
	case spec == nil:
		return nil, reason.Usagef("tool %q: its tokens are obtained without a person", o.Tool)
	case o.Store == nil:
		return nil, fmt.Errorf("tool %q: no folder keeps logins here", o.Tool)
	case spec.ClientSecret != nil && o.Secret == "":
		return nil, reason.New(reason.CredentialMissing, "tool %q: %s.clientSecret: the value is not known", o.Tool, o.field())
	}
	l := &login{Options: o, person: p, shelf: newShelf(o.Store, o.Server), turn: make(turn, 1), origin: origin{
		at: at, resource: o.Server.URL, issuer: spec.Issuer, field: o.field(), secret: o.Secret != "", client: newClient(at, spec.Issuer),
	}}
	if l.before, err = l.shelf.read(); err != nil && reason.Of(err) != reason.CredentialMissing {
		return nil, err
	}
	return &Tokens{at, l}, nil
}

// Login returns the login that a person has made with Asking; false: the server has not
// asked for one.
func (t *Tokens) Login(now time.Time) (Login, bool) {
	l, ok := t.grant.(*login)
	if !ok || l.now == nil {
		return Login{}, false
	}
	return l.now.login(now), true
}

// current implements grant. A login begins without what was kept.
func (l *login) current(ctx context.Context) (string, error) {
	if err := l.turn.take(ctx); err != nil {
		return "", err
	}
	defer l.turn.pass()
	if l.now == nil {
		return "", nil
	}
	return l.now.Access, nil
}

// next implements grant.
func (l *login) next(ctx context.Context, used string, status int, challenges []oauthex.Challenge) (string, error) {
	if err := l.turn.take(ctx); err != nil {
		return "", err
	}
	defer l.turn.pass()
	if l.now != nil && l.now.Access != used {
		return l.now.Access, nil
	}
	if l.logins++; l.logins > maxLogins {
		return "", fmt.Errorf("the server has asked for another login %d times", maxLogins)
	}
	finding, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	at, err := l.origin.find(finding, challenges)
	if err != nil {
		return "", l.failed(err)
	}
	var granted []string
	if l.now != nil && l.now.Issuer == at.issuer {
		granted = l.now.Scopes
	}
	scopes := scopesOf(l.Server.Auth.AuthorizationCode, l.before, at, challenges, granted)
	if l.now != nil && l.now.Issuer == at.issuer && status == http.StatusForbidden && slices.Equal(scopes, granted) {
		return "", fmt.Errorf("the scopes %q of the login are not sufficient", strings.Join(scopes, " "))
	}
	k, err := l.ask(ctx, at, scopes)
	if err != nil {
		return "", l.failed(err)
	}
	l.now, l.before = k, k
	return k.Access, nil
}

// reject implements grant.
func (l *login) reject(_ context.Context, status int) error {
	return reason.New(reason.CredentialRejected, "tool %q: the server refuses the token of the login: status %d", l.Tool, status)
}

func (l *login) failed(err error) error {
	if _, ok := errors.AsType[*reason.Error](err); ok {
		return err
	}
	return reason.New(reason.CredentialRejected, "tool %q: log in: %w", l.Tool, err)
}

// ask has the person log in at an authorization server, and keeps the login.
func (l *login) ask(ctx context.Context, at *found, scopes []string) (*kept, error) {
	if !slices.Contains(at.server.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("%s does not offer PKCE with S256", clean(at.issuer))
	}
	if err := confidential(at.server.AuthorizationEndpoint); err != nil {
		return nil, fmt.Errorf("the page of %s to log in at: %w", clean(at.issuer), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, PersonTime, errPersonTime)
	defer cancel()
	browser, err := l.listen(ctx)
	if err != nil {
		return nil, err
	}
	if l.person.Paste == nil {
		defer browser.Close() //nolint:errcheck // wait has closed it already where it was reached
	} else {
		_ = browser.Close() // its port is only a name
	}
	registering, stop := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer stop()
	k, err := l.enrol(registering, at, browser.url)
	if err != nil {
		return nil, err
	}
	k.Scopes = scopes
	return k, l.authorize(ctx, at, k, browser)
}

var errPersonTime = errors.New("nobody has logged in in time")

// listen takes the port of an earlier login, if it is free: the client was registered with
// it.
func (l *login) listen(ctx context.Context) (*listener, error) {
	if l.before != nil && l.before.Registered && l.person.Port == 0 {
		if u, err := url.Parse(l.before.Redirect); err == nil {
			port := 0
			if _, err := fmt.Sscan(u.Port(), &port); err == nil {
				if browser, err := listen(ctx, port); err == nil {
					return browser, nil
				}
			}
		}
	}
	return listen(ctx, l.person.Port)
}

// authorize is the grant itself: an authorization code, bound to this process by its state
// and by PKCE, is exchanged for tokens for the server.
func (l *login) authorize(ctx context.Context, at *found, k *kept, browser *listener) error {
	secret := k.ClientSecret
	if secret == "" && !k.Registered {
		secret = l.Secret
	}
	grant := oauth2.Config{
		ClientID: k.ClientID, ClientSecret: secret, RedirectURL: k.Redirect, Scopes: k.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: at.server.AuthorizationEndpoint, TokenURL: k.TokenURL, AuthStyle: k.style()},
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	resource := oauth2.SetAuthURLParam("resource", k.Resource)
	visit := Visit{
		URL:    grant.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), resource),
		Issuer: hostOf(at.issuer), Server: l.origin.at.Host, Scopes: k.Scopes, Redirect: k.Redirect,
	}
	answer, err := l.answer(ctx, visit, state, browser)
	if err != nil {
		return err
	}
	if err := authentic(answer, at); err != nil {
		return err
	}
	code := answer.Get("code")
	if len(answer["code"]) != 1 || code == "" {
		return fmt.Errorf("%s has sent no authorization code", clean(at.issuer))
	}
	limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	got, err := grant.Exchange(context.WithValue(limited, oauth2.HTTPClient, l.origin.client), code, oauth2.VerifierOption(verifier), resource)
	if err == nil {
		err = usableToken(got)
	}
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = fmt.Errorf("%s refuses the authorization code: %s", clean(at.issuer), spoken(said, secret, code, verifier))
	}
	if err != nil {
		return err
	}
	k.take(got)
	if len(k.Refresh) > maxToken {
		return fmt.Errorf("the refresh token of %s is too long", clean(at.issuer))
	}
	if granted, ok := got.Extra("scope").(string); ok && granted != "" {
		k.Scopes = union(strings.Fields(granted))
	}
	for _, value := range k.secrets() {
		l.Learn(value)
	}
	return l.keep(ctx, k)
}

// keep stores the login for runs.
func (l *login) keep(ctx context.Context, k *kept) error {
	limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	unlock, err := l.shelf.logins.Lock(limited, l.shelf.name)
	if err != nil {
		return err
	}
	defer unlock()
	return l.shelf.write(k)
}

// answer shows the page, and returns what the authorization server has sent the browser
// back with.
func (l *login) answer(ctx context.Context, v Visit, state string, browser *listener) (url.Values, error) {
	if l.person.Paste == nil {
		// The browser may return while Visit still runs: it may be what opens the page.
		type outcome struct {
			answer url.Values
			err    error
		}
		waiting, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		done := make(chan outcome, 1)
		go func() { // ends with waiting
			answer, err := browser.wait(waiting, state)
			done <- outcome{answer, err}
		}()
		if err := l.person.Visit(ctx, v); err != nil {
			cancel(err)
		}
		got := <-done
		return got.answer, got.err
	}
	if err := l.person.Visit(ctx, v); err != nil {
		return nil, err
	}
	text, err := l.person.Paste(ctx)
	if err != nil {
		return nil, err
	}
	return pasted(text, v.Redirect, state)
}

// authentic refuses an answer of another authorization server than the one that was asked
// (RFC 9207), and one that is an error.
func authentic(answer url.Values, at *found) error {
	iss, sent := answer["iss"]
	switch {
	case at.server.AuthorizationResponseIssParameterSupported && !sent:
		return fmt.Errorf("the answer does not say that it is from %s, which promises that", clean(at.issuer))
	case sent && (len(iss) != 1 || iss[0] != at.server.Issuer):
		return fmt.Errorf("the answer is from %s, and not from %s, where the login began", clean(strings.Join(iss, ", ")), clean(at.issuer))
	case sent && !at.server.AuthorizationResponseIssParameterSupported:
		return fmt.Errorf("the answer names its authorization server, which %s does not promise", clean(at.issuer))
	}
	if code := answer.Get("error"); code != "" {
		text := code
		if more := answer.Get("error_description"); more != "" {
			text += ": " + more
		}
		return fmt.Errorf("%s refuses: %s", clean(at.issuer), clean(text[:min(len(text), maxSaid)]))
	}
	return nil
}
