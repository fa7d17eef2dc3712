package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Bounds of an access token.
const (
	// tokenTime bounds all requests that lead to one token.
	tokenTime = 30 * time.Second
	// earlier is how long before its end a token is replaced.
	earlier   = 10 * time.Second
	minToken  = 6
	maxToken  = 16 << 10
	maxScopes = 64
)

// turn is held by the one that reads or changes what it guards. Waiting for it ends with
// a context.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) pass() { <-t }

// credentials implement grant by the OAuth grant of client credentials. The newest token
// is kept in memory.
type credentials struct {
	Options
	spec   *v1alpha1.ClientCredentials
	origin origin

	turn turn
	// endpoint is where tokens are obtained; nil: it has not been found.
	endpoint *endpoint
	token    *oauth2.Token
	scopes   []string
	// refused is set once the client was refused: it is not tried again.
	refused error
}

// endpoint is where an authorization server issues tokens.
type endpoint struct {
	url   string
	style oauth2.AuthStyle
	// resource is how the MCP server names itself.
	resource string
	// scopes are those that the metadata of the MCP server lists.
	scopes []string
}

func newCredentials(o Options, at *url.URL) (*credentials, error) {
	spec := o.Server.Auth.ClientCredentials
	t := &credentials{Options: o, spec: spec, turn: make(turn, 1), origin: origin{
		at: at, resource: o.Server.URL, issuer: spec.Issuer, field: o.field(), secret: true, client: newClient(at, spec.Issuer, spec.TokenURL),
	}}
	if o.Secret == "" {
		return nil, reason.New(reason.CredentialMissing, "tool %q: %s.clientSecret: the value is not known", o.Tool, o.field())
	}
	if spec.TokenURL != "" {
		t.endpoint = &endpoint{url: spec.TokenURL, style: oauth2.AuthStyleAutoDetect, resource: o.Server.URL}
	}
	return t, nil
}

// current is the token to send with a request; "" before the server has asked for one.
func (t *credentials) current(ctx context.Context) (string, error) {
	if err := t.turn.take(ctx); err != nil {
		return "", err
	}
	defer t.turn.pass()
	if t.endpoint == nil || t.token == nil && t.spec.TokenURL == "" {
		return "", t.refused
	}
	if t.token != nil && (t.token.Expiry.IsZero() || t.Now().Add(earlier).Before(t.token.Expiry)) {
		return t.token.AccessToken, nil
	}
	return t.obtain(ctx)
}

// next is the token to send after the server has refused a request that had the used one.
func (t *credentials) next(ctx context.Context, used string, status int, challenges []oauthex.Challenge) (string, error) {
	if err := t.turn.take(ctx); err != nil {
		return "", err
	}
	defer t.turn.pass()
	if t.token != nil && t.token.AccessToken != used { // another request was first
		return t.token.AccessToken, nil
	}
	wanted := t.wanted(challenges)
	if used != "" && status == http.StatusForbidden && slices.Equal(wanted, t.scopes) {
		return "", fmt.Errorf("the scopes %q of the access token are not sufficient", strings.Join(wanted, " "))
	}
	if t.endpoint == nil {
		limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
		defer cancel()
		found, err := t.origin.find(limited, challenges)
		if err != nil {
			return "", t.failed(ctx, limited, err)
		}
		t.endpoint = &endpoint{url: found.server.TokenEndpoint, style: style(found.server.TokenEndpointAuthMethodsSupported), resource: found.resource, scopes: found.scopes}
	}
	t.scopes = wanted
	return t.obtain(ctx)
}

// style is how a client's secret is sent: in the header, unless only the form is read.
func style(methods []string) oauth2.AuthStyle {
	if slices.Contains(methods, "client_secret_post") && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// wanted are the scopes to ask for: those of the manifest alone, or else what the server
// asks for beyond the present ones.
func (t *credentials) wanted(challenges []oauthex.Challenge) []string {
	if len(t.spec.Scopes) > 0 {
		return t.spec.Scopes
	}
	return union(t.scopes, demanded(challenges))
}

// demanded are the scopes that a server asks for when it refuses a request.
func demanded(challenges []oauthex.Challenge) (all []string) {
	for _, c := range challenges {
		if c.Scheme == "bearer" {
			all = append(all, strings.Fields(c.Params["scope"])...)
		}
	}
	return all
}

// union is the sorted union of scopes, as far as they can be sent.
func union(sets ...[]string) []string {
	all := slices.DeleteFunc(slices.Concat(sets...), func(s string) bool {
		return s == "" || len(s) > maxScope || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' })
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxScopes)]
}

// maxScope bounds one scope.
const maxScope = 256

// obtain asks the authorization server for a token. The caller has the turn.
func (t *credentials) obtain(ctx context.Context) (string, error) {
	if t.refused != nil {
		return "", t.refused
	}
	limited, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	scopes := t.scopes
	if len(t.spec.Scopes) > 0 {
		scopes = t.spec.Scopes
	} else if len(scopes) == 0 {
		scopes = t.endpoint.scopes
	}
	grant := clientcredentials.Config{
		ClientID: t.spec.ClientID, ClientSecret: t.Secret, TokenURL: t.endpoint.url, Scopes: scopes, AuthStyle: t.endpoint.style,
		EndpointParams: url.Values{"resource": {t.endpoint.resource}},
	}
	got, err := grant.Token(context.WithValue(limited, oauth2.HTTPClient, t.origin.client))
	if err != nil {
		return "", t.failed(ctx, limited, err)
	}
	if err := usableToken(got); err != nil {
		return "", t.failed(ctx, limited, err)
	}
	t.Learn(got.AccessToken)
	t.token = got
	return got.AccessToken, nil
}

// usableToken refuses what cannot be sent as a bearer token, or cannot be kept secret.
func usableToken(got *oauth2.Token) error {
	switch {
	case !strings.EqualFold(got.Type(), "bearer"):
		return errors.New("its token is not a bearer token")
	case len(got.AccessToken) < minToken || len(got.AccessToken) > maxToken:
		return fmt.Errorf("its token has %d characters: from %d to %d can be used", len(got.AccessToken), minToken, maxToken)
	case strings.ContainsFunc(got.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }):
		return errors.New("its token holds a space, a line break or another character that no token has")
	}
	return nil
}

var errTokenTime = errors.New("it did not answer in time")

// failed is the error of a token that could not be obtained. It holds nothing of the
// answer but the error code and its description.
func (t *credentials) failed(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if cause := context.Cause(limited); cause != nil {
		err = cause
	}
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		text := spoken(said, t.Secret)
		if refuses(said) {
			return t.refuse("%s refuses the client: %s", t.host(), text)
		}
		err = errors.New(text)
	}
	return reason.New(reason.ToolError, "tool %q: %s: obtain an access token from %s: %w", t.Tool, t.field(), t.host(), err).
		WithHint("agentctl mcp test shows what the server does; tokenURL or issuer names where tokens come from")
}

// spoken is the error code of an authorization server and its description, without
// secrets that it repeats.
func spoken(said *oauth2.RetrieveError, secrets ...string) string {
	text := fmt.Sprintf("status %d", said.Response.StatusCode)
	if said.ErrorCode != "" {
		text = said.ErrorCode
	}
	if said.ErrorDescription != "" {
		text += ": " + said.ErrorDescription
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return clean(text[:min(len(text), maxSaid)])
}

// refuses reports whether an answer is about the client, and not about the server's state.
func refuses(said *oauth2.RetrieveError) bool {
	switch said.Response.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	return said.ErrorCode != "" && said.Response.StatusCode < http.StatusMultipleChoices
}

// maxSaid bounds what is shown of an authorization server's error.
const maxSaid = 300

// host is where the client asks for tokens.
func (t *credentials) host() string {
	at := t.origin.at
	if t.endpoint != nil {
		if u, err := url.Parse(t.endpoint.url); err == nil {
			at = u
		}
	}
	return at.Host
}

// reject implements grant.
func (t *credentials) reject(ctx context.Context, status int) error {
	if err := t.turn.take(ctx); err != nil {
		return err
	}
	defer t.turn.pass()
	return t.refuse("the server refuses the token of %s: status %d", t.host(), status)
}

// refuse remembers that the client is refused: to ask again and again would lock it.
func (t *credentials) refuse(format string, args ...any) error {
	t.refused = reason.New(reason.CredentialRejected, "tool %q: %s: "+format, append([]any{t.Tool, t.field()}, args...)...).
		WithHint("check clientID, clientSecret and scopes of the Tool")
	return t.refused
}
