package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// memory is a Store. locked is called by Lock, as if another process had had the lock.
type memory struct {
	documents map[string]string
	locked    func()
}

func (m *memory) Get(name string) (string, bool, error) {
	text, found := m.documents[name]
	return text, found, nil
}
func (m *memory) Set(name, document string) error { m.documents[name] = document; return nil }
func (m *memory) Remove(name string) error        { delete(m.documents, name); return nil }
func (m *memory) Names() ([]string, error)        { return slices.Sorted(maps.Keys(m.documents)), nil }

func (m *memory) Lock(context.Context, string) (func(), error) {
	if m.locked != nil {
		m.locked()
	}
	return func() {}, nil
}

const secretOfClient = "secret-of-the-client"

// office is a token endpoint. It keeps the forms, and the headers of clients.
type office struct {
	*httptest.Server
	forms   []url.Values
	clients []string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		o.forms, o.clients = append(o.forms, r.PostForm), append(o.clients, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"access-token-2","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *office) sent() string { return fmt.Sprint(o.forms, o.clients) }

func optionsOf(store Store, server string, with v1alpha1.AuthorizationCode) Options {
	o := Options{
		Tool: "s", Server: &v1alpha1.MCPHTTP{URL: server + "/mcp", Auth: &v1alpha1.MCPAuth{AuthorizationCode: &with}},
		Learn: func(string) {}, Store: store, Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
	}
	if with.ClientSecret != nil {
		o.Secret = secretOfClient
	}
	return o
}

// expired is a login whose token must be renewed.
func expired(o Options, issuer, tokenURL string) *kept {
	return &kept{
		Tool: o.Tool, Server: o.Server.URL, Resource: o.Server.URL, Issuer: issuer, TokenURL: tokenURL, ClientID: "app",
		Access: "access-token-1", Refresh: "refresh-token-1", Expires: o.Now().Add(-time.Hour), InForm: true,
	}
}

// A login that was made without the client's secret may be at an authorization server that
// the MCP server has chosen: the secret that the manifest names later does not go there.
func TestALoginWithoutTheClientsSecretIsNoneWithIt(t *testing.T) {
	store := &memory{documents: map[string]string{}}
	without := optionsOf(store, "https://mcp.example.com", v1alpha1.AuthorizationCode{ClientID: "app"})
	with := optionsOf(store, "https://mcp.example.com", v1alpha1.AuthorizationCode{ClientID: "app", ClientSecret: &v1alpha1.ValueSource{}})
	if err := newShelf(store, without.Server).write(expired(without, "https://foreign.example.com", "https://foreign.example.com/token")); err != nil {
		t.Fatal(err)
	}
	if !LoggedIn(without) || LoggedIn(with) {
		t.Errorf("without the secret: %t, with it: %t", LoggedIn(without), LoggedIn(with))
	}
}

// A run sends the secret only where a login with it would have been made.
func TestARenewalSendsTheSecretWhereALoginWould(t *testing.T) {
	for name, c := range map[string]struct {
		issuer string // of the manifest: "other" is the other office
		change func(k *kept, other string)
		other  bool // who is asked
		sent   bool // the secret
		wants  string
	}{
		"the server's own host":  {change: func(*kept, string) {}, sent: true},
		"the manifest's issuer":  {issuer: "other", change: func(k *kept, at string) { k.Issuer, k.TokenURL = at, at+"/token" }, other: true, sent: true},
		"a foreign issuer":       {change: func(k *kept, at string) { k.Issuer, k.TokenURL = at, at+"/token" }, wants: "the secret is sent there if it is written as"},
		"a foreign endpoint":     {change: func(k *kept, at string) { k.TokenURL = at + "/token" }, wants: "is not at its own host"},
		"another issuer":         {issuer: "https://login.example.com", change: func(*kept, string) {}, wants: "and not that of"},
		"a registered client":    {change: func(k *kept, at string) { k.Issuer, k.TokenURL, k.Registered = at, at+"/token", true }, other: true},
		"its own kept secret":    {change: func(k *kept, _ string) { k.Registered, k.ClientSecret = true, "secret-of-registration" }},
		"a login without expiry": {change: func(k *kept, at string) { k.Issuer, k.TokenURL, k.Access = at, at+"/token", "" }, wants: "the secret is sent there if it is written as"},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := newOffice(t), newOffice(t)
			if c.issuer == "other" {
				c.issuer = other.URL
			}
			store := &memory{documents: map[string]string{}}
			o := optionsOf(store, own.URL, v1alpha1.AuthorizationCode{ClientID: "app", ClientSecret: &v1alpha1.ValueSource{}, Issuer: c.issuer})
			k := expired(o, own.URL, own.URL+"/token")
			c.change(k, other.URL)
			if err := newShelf(store, o.Server).write(k); err != nil {
				t.Fatal(err)
			}
			at, err := o.check()
			if err != nil {
				t.Fatal(err)
			}
			s, err := newSession(o, at)
			if err != nil {
				t.Fatal(err)
			}
			token, err := s.current(t.Context())
			if c.wants != "" {
				if reason.Of(err) != reason.CredentialRejected || !strings.Contains(err.Error(), c.wants) || !strings.Contains(reason.Hint(err), "agentctl auth login s -f") {
					t.Errorf("the error is %v, %s", err, reason.Hint(err))
				}
				if len(own.forms)+len(other.forms) > 0 {
					t.Errorf("it was asked all the same: %s %s", own.sent(), other.sent())
				}
				return
			}
			if err != nil || token != "access-token-2" {
				t.Fatalf("%q, %v", token, err)
			}
			asked, idle := own, other
			if c.other {
				asked, idle = other, own
			}
			if len(asked.forms) != 1 || len(idle.forms) > 0 || strings.Contains(asked.sent(), secretOfClient) != c.sent {
				t.Errorf("asked: %s, the other: %s", asked.sent(), idle.sent())
			}
		})
	}
}

// A login that a run renews while logout waits for it gives back the new token, and one
// that another logout has removed is not counted twice.
func TestLogoutReadsTheLoginThatItForgets(t *testing.T) {
	own := newOffice(t)
	store := &memory{documents: map[string]string{}}
	o := optionsOf(store, own.URL, v1alpha1.AuthorizationCode{ClientID: "app"})
	at := newShelf(store, o.Server)
	k := expired(o, own.URL, own.URL+"/token")
	k.RevokeURL = own.URL + "/revoke"
	store.locked = func() {
		k.Refresh = "refresh-token-2"
		text, err := json.Marshal(k)
		if err != nil {
			t.Error(err)
		}
		store.documents[at.name] = string(text)
	}
	if err := at.write(k); err != nil {
		t.Fatal(err)
	}
	gone, left, err := Logout(t.Context(), store, "s", "", o.Now())
	if err != nil || len(gone) != 1 || len(left) > 0 || len(own.forms) != 1 || own.forms[0].Get("token") != "refresh-token-2" {
		t.Errorf("%v, %v, %v: %s", gone, left, err, own.sent())
	}
	if err := at.write(k); err != nil {
		t.Fatal(err)
	}
	store.locked = func() { delete(store.documents, at.name) }
	if gone, _, err := Logout(t.Context(), store, "s", "", o.Now()); err != nil || len(gone) > 0 || len(own.forms) != 1 {
		t.Errorf("%v, %v: %s", gone, err, own.sent())
	}
	if err := at.write(k); err != nil {
		t.Fatal(err)
	}
	store.locked = func() { // the shelf has the login of another Tool by now
		k.Tool = "other"
		if err := at.write(k); err != nil {
			t.Error(err)
		}
	}
	if gone, _, err := Logout(t.Context(), store, "s", "", o.Now()); err != nil || len(gone) > 0 || len(store.documents) != 1 {
		t.Errorf("%v, %v, %d left", gone, err, len(store.documents))
	}
}
