package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// kept is what is kept of the login of a person. Its fields are secret unless Login has
// them.
type kept struct {
	Tool   string `json:"tool"`
	Server string `json:"server"`
	// Resource is how the server names itself: tokens are for it.
	Resource string `json:"resource"`
	// Issuer is where the person has logged in, TokenURL where tokens are renewed, and
	// RevokeURL where they are given back; "" without one.
	Issuer    string `json:"issuer"`
	TokenURL  string `json:"tokenURL"`
	RevokeURL string `json:"revokeURL,omitempty"`
	// ClientID is the client, ClientSecret that of a client that was registered at the
	// login. The secret of a manifest is not kept.
	ClientID     string `json:"clientID"`
	ClientSecret string `json:"clientSecret,omitempty"`
	// Registered is set for a client that was registered at a login, for Redirect.
	Registered bool   `json:"registered,omitempty"`
	Redirect   string `json:"redirect,omitempty"`
	// InForm sends the client's secret in the form and not in a header.
	InForm bool     `json:"inForm,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Wanted are scopes that the server has asked a run for.
	Wanted  []string  `json:"wanted,omitempty"`
	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Since   time.Time `json:"since"`
	// Ended is why the login holds no longer; "" while it does.
	Ended string `json:"ended,omitempty"`
}

// usable reports whether the access token can be sent.
func (k *kept) usable(now time.Time) bool {
	return k.Access != "" && (k.Expires.IsZero() || now.Add(earlier).Before(k.Expires))
}

// take replaces the tokens by new ones. Without a new refresh token the old one is valid.
func (k *kept) take(got *oauth2.Token) {
	k.Access, k.Expires, k.Ended = got.AccessToken, got.Expiry, ""
	if got.RefreshToken != "" {
		k.Refresh = got.RefreshToken
	}
}

// style is how the client's secret is sent.
func (k *kept) style() oauth2.AuthStyle {
	if k.InForm {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// secrets are what must not be written anywhere else.
func (k *kept) secrets() []string {
	return slices.DeleteFunc([]string{k.Access, k.Refresh, k.ClientSecret}, func(s string) bool { return s == "" })
}

// shelf is where the login for one declaration of a server is kept: Tools that declare the
// same server, client, issuer and scopes share it. A client with a secret has another shelf
// than the same one without: a login without it may be where the secret must not go.
type shelf struct {
	logins Store
	name   string
}

func newShelf(store Store, server *v1alpha1.MCPHTTP) shelf {
	a := server.Auth.AuthorizationCode
	declared := []any{server.URL, a.ClientID, a.Issuer, slices.Sorted(slices.Values(a.Scopes))}
	if a.ClientSecret != nil {
		declared = append(declared, "clientSecret")
	}
	text, _ := json.Marshal(declared) // strings are always JSON
	sum := sha256.Sum256(text)
	return shelf{store, namePrefix + hex.EncodeToString(sum[:12])}
}

const namePrefix = "login_"

// read returns the login; nil without one.
func (s shelf) read() (*kept, error) {
	document, found, err := s.logins.Get(s.name)
	if err != nil || !found {
		return nil, err
	}
	k := &kept{}
	if err := json.Unmarshal([]byte(document), k); err != nil {
		return nil, reason.New(reason.CredentialMissing, "the login %s cannot be read", s.name).WithHint("log in again: agentctl auth login")
	}
	return k, nil
}

func (s shelf) write(k *kept) error {
	document, err := json.Marshal(k) //nolint:gosec // the store is what keeps secrets
	if err == nil {
		err = s.logins.Set(s.name, string(document))
	}
	if err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	return nil
}

// States of a login.
const (
	// Valid is a login that runs can use.
	Valid = "Valid"
	// Expired is one whose token has ended and cannot be renewed.
	Expired = "Expired"
	// Ended is one that the authorization server does not renew any more.
	Ended = "Ended"
)

// Login is a kept login, without its secrets.
type Login struct {
	Tool   string   `json:"tool"`
	Server string   `json:"server"`
	Issuer string   `json:"issuer"`
	Client string   `json:"client"`
	Scopes []string `json:"scopes"`
	// State is Valid, Expired or Ended.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Expires is when the present token ends; null: never, or not known.
	Expires *time.Time `json:"expires"`
	// Renewable reports whether runs renew the token by themselves.
	Renewable bool `json:"renewable"`
	// Wanted are scopes that the server has asked a run for since.
	Wanted []string `json:"wanted"`
	// Problem is why the login has ended; "".
	Problem string `json:"problem"`
}

func (k *kept) login(now time.Time) Login {
	l := Login{
		Tool: k.Tool, Server: k.Server, Issuer: k.Issuer, Client: k.ClientID, Scopes: slices.Concat([]string{}, k.Scopes), State: Valid,
		Since: k.Since, Renewable: k.Refresh != "" && k.Ended == "", Wanted: slices.Concat([]string{}, k.Wanted), Problem: k.Ended,
	}
	if !k.Expires.IsZero() {
		l.Expires = &k.Expires
	}
	switch {
	case k.Ended != "":
		l.State = Ended
	case !k.usable(now) && k.Refresh == "":
		l.State = Expired
	}
	return l
}

// Logins returns the kept logins, by tool and server.
func Logins(store Store, now time.Time) ([]Login, error) {
	all := []Login{}
	err := each(store, func(_ shelf, k *kept) error {
		all = append(all, k.login(now))
		return nil
	})
	slices.SortFunc(all, func(a, b Login) int {
		return strings.Compare(a.Tool+"\x00"+a.Server, b.Tool+"\x00"+b.Server)
	})
	return all, err
}

// each calls do for every login. One that cannot be read is left out: it can be replaced
// by another login only.
func each(logins Store, do func(shelf, *kept) error) error {
	names, err := logins.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		at := shelf{logins, name}
		if k, err := at.read(); err == nil && k != nil {
			if err := do(at, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Logout forgets the logins of a tool, only those at a server if its URL is given, and
// gives their tokens back where the authorization server takes them. It returns the
// logins that are forgotten, and what could not be given back.
func Logout(ctx context.Context, store Store, tool, server string, now time.Time) (gone []Login, left []error, err error) {
	chosen := func(k *kept) bool { return k != nil && k.Tool == tool && (server == "" || k.Server == server) }
	err = each(store, func(at shelf, k *kept) error {
		if !chosen(k) {
			return nil
		}
		unlock, err := at.logins.Lock(ctx, at.name)
		if err != nil {
			return err
		}
		defer unlock()
		if k, err = at.read(); err != nil || !chosen(k) { // a run may have renewed it meanwhile
			return err
		}
		if err := at.logins.Remove(at.name); err != nil {
			return err
		}
		gone = append(gone, k.login(now))
		if err := k.revoke(ctx); err != nil {
			left = append(left, err)
		}
		return nil
	})
	return gone, left, err
}

// revoke gives the tokens back (RFC 7009).
func (k *kept) revoke(ctx context.Context) error {
	token := k.Refresh
	if token == "" {
		token = k.Access
	}
	if k.RevokeURL == "" || token == "" {
		return nil
	}
	at, err := url.Parse(k.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tokenTime, errTokenTime)
	defer cancel()
	return send(ctx, newClient(at, k.Issuer), k, url.Values{"token": {token}})
}
