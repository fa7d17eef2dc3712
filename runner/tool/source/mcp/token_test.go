package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// guarded is an MCP server that demands a token, with an authorization server at its host
// unless another one is set.
type guarded struct {
	*httptest.Server
	// meta and issuer are what its metadata say; token answers at its token endpoint.
	meta, issuer map[string]any
	token        http.HandlerFunc
	// expires is expires_in of the tokens; scope is demanded of them.
	expires int
	scope   string

	mu sync.Mutex
	// forms are the requests for tokens; seen are the Authorization headers of others.
	forms []string
	seen  []string
}

const clientSecretValue = "client-secret-of-the-run"

func newGuarded(t *testing.T, inner http.Handler) *guarded {
	t.Helper()
	g := &guarded{expires: 3600}
	mux := http.NewServeMux()
	answer := func(of *map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(*of) // a client that has gone is the test's point
		}
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", answer(&g.meta))
	mux.HandleFunc("/.well-known/oauth-authorization-server", answer(&g.issuer))
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		id, secret, _ := r.BasicAuth()
		g.mu.Lock()
		g.forms = append(g.forms, id+" "+secret+" "+r.PostForm.Encode())
		n := len(g.forms)
		g.mu.Unlock()
		if g.token != nil {
			g.token(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"access-token-%d","token_type":"Bearer","expires_in":%d}`, n, g.expires)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		g.mu.Lock()
		g.seen = append(g.seen, sent)
		g.mu.Unlock()
		if !strings.HasPrefix(sent, "Bearer access-token-") {
			challenge := fmt.Sprintf("Bearer resource_metadata=%q", g.URL+"/.well-known/oauth-protected-resource/mcp")
			if g.scope != "" {
				challenge += fmt.Sprintf(", scope=%q", g.scope)
			}
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	g.meta = map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{g.URL}}
	g.issuer = map[string]any{
		"issuer": g.URL, "authorization_endpoint": g.URL + "/authorize", "token_endpoint": g.URL + "/token",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	}
	return g
}

// bed is a run with the server as a tool, and with what it has learned.
func (g *guarded) bed(t *testing.T, with v1alpha1.ClientCredentials) (*bed, func() []string) {
	t.Helper()
	with.ClientID = "me"
	var mu sync.Mutex
	var learned []string
	b := newBedOf(t, "", &v1alpha1.MCPSource{HTTP: &v1alpha1.MCPHTTP{URL: g.URL + "/mcp", Auth: &v1alpha1.MCPAuth{ClientCredentials: &with}}}, func(o *tool.PoolOptions) {
		o.Secrets = map[string]map[string]string{"s": {oauth.ClientSecret: clientSecretValue}}
		o.Learn = func(v string) {
			mu.Lock()
			defer mu.Unlock()
			learned = append(learned, v)
		}
	})
	return b, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(learned)
	}
}

func (g *guarded) requests() (forms, seen []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.forms), slices.Clone(g.seen)
}

func TestATokenIsObtainedByTheMetadata(t *testing.T) {
	g := newGuarded(t, good())
	g.scope = "files.read"
	b, learned := g.bed(t, v1alpha1.ClientCredentials{})
	if b.def.Secrets[0].Field != "spec.source.mcp.http.auth.clientCredentials.clientSecret" {
		t.Errorf("%+v", b.def.Secrets)
	}
	for range 3 {
		if r := b.answer("echo", `{"text":"hi"}`); r.Failed {
			t.Errorf("%+v", r)
		}
	}
	forms, seen := g.requests()
	want := "me " + clientSecretValue + " grant_type=client_credentials&resource=" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(g.URL) + "%2Fmcp&scope=files.read"
	if len(forms) != 1 || forms[0] != want {
		t.Errorf("tokens were asked for by %q\nwant %q", forms, want)
	}
	if seen[0] != "" || slices.Contains(seen[2:], "") {
		t.Errorf("the requests had %q", seen)
	}
	if got := learned(); len(got) != 1 || got[0] != "access-token-1" {
		t.Errorf("learned %q", got)
	}
}

func TestDeclaredScopesAndTokenURLAreUsed(t *testing.T) {
	g := newGuarded(t, good())
	g.scope, g.meta = "admin", nil
	b, _ := g.bed(t, v1alpha1.ClientCredentials{Scopes: []string{"b", "a"}, TokenURL: g.URL + "/token"})
	b.answer("echo", `{}`)
	forms, seen := g.requests()
	if len(forms) != 1 || !strings.Contains(forms[0], "scope=b+a") || slices.Contains(seen, "") {
		t.Errorf("%q, requests with %q", forms, seen)
	}
}

func TestATokenIsReplacedBeforeItEndsAndWhenItIsRefused(t *testing.T) {
	g := newGuarded(t, good())
	g.expires = 1 // less than what a token is replaced earlier
	b, learned := g.bed(t, v1alpha1.ClientCredentials{})
	b.answer("echo", `{}`)
	if forms, _ := g.requests(); len(forms) < 2 || len(learned()) != len(forms) {
		t.Errorf("%d tokens were obtained, %q learned", len(forms), learned())
	}

	var revoked atomic.Bool
	inner := good()
	g = newGuarded(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoked.Load() && r.Header.Get("Authorization") == "Bearer access-token-1" {
			http.Error(w, "revoked", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	b, _ = g.bed(t, v1alpha1.ClientCredentials{})
	echo := b.function("echo")
	revoked.Store(true)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if r, err := b.call(t.Context(), echo, `{"text":"x"}`, nil); err != nil || r.Failed {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	calls.Wait()
	if forms, _ := g.requests(); len(forms) != 2 {
		t.Errorf("%d tokens were obtained for one that was revoked", len(forms))
	}
}

// What a server's metadata says decides where the secret goes: to no other host.
func TestTheSecretIsSentToNoHostThatTheServerChooses(t *testing.T) {
	var reached atomic.Int32
	thief := httptest.NewServer(nil)
	t.Cleanup(thief.Close)
	thief.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"resource":%q,"authorization_servers":[%q],"token_endpoint":%q,"code_challenge_methods_supported":["S256"],"access_token":"access-token-9","token_type":"Bearer"}`, thief.URL, thief.URL, thief.URL, thief.URL)
	})
	for name, c := range map[string]struct {
		with  v1alpha1.ClientCredentials
		set   func(g *guarded)
		wants string
	}{
		"another authorization server": {set: func(g *guarded) { g.meta["authorization_servers"] = []string{thief.URL} }, wants: "is not at its own host"},
		"another issuer than that of the manifest": {
			with:  v1alpha1.ClientCredentials{Issuer: "https://login.example.com"},
			set:   func(g *guarded) { g.meta["authorization_servers"] = []string{thief.URL} },
			wants: "and not that of spec.source.mcp.http.auth.clientCredentials.issuer",
		},
		"another token endpoint":     {set: func(g *guarded) { g.issuer["token_endpoint"] = thief.URL + "/token" }, wants: "tokenURL"},
		"metadata of another issuer": {set: func(g *guarded) { g.issuer["issuer"] = thief.URL }, wants: "issuer"},
		"metadata of another server": {set: func(g *guarded) { g.meta["resource"] = thief.URL + "/mcp" }, wants: "resource"},
		"a token endpoint that redirects": {
			set: func(g *guarded) {
				g.token = func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
				}
			},
			wants: "redirects to",
		},
		"no https": {with: v1alpha1.ClientCredentials{TokenURL: "http://login.example.com/token"}, set: func(*guarded) {}, wants: "tokenURL: a secret would be sent there in the clear"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t, good())
			c.set(g)
			b, _ := g.bed(t, c.with)
			_, err := b.pool.Several(t.Context(), &b.def, "")
			if err == nil || !strings.Contains(err.Error(), c.wants) || strings.Contains(err.Error(), clientSecretValue) {
				t.Errorf("the error is %v", err)
			}
			if n := reached.Load(); n > 0 {
				t.Errorf("the other host got %d requests", n)
			}
			if _, seen := g.requests(); strings.Contains(strings.Join(seen, ""), "Bearer") {
				t.Errorf("requests with %q", seen)
			}
		})
	}
}

func TestMetadataOfAnotherHostIsNotReadByAChallenge(t *testing.T) {
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(other.Close)
	g := &guarded{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", other.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(g.Close)
	b, _ := g.bed(t, v1alpha1.ClientCredentials{})
	if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "does not name") || reached.Load() > 0 {
		t.Errorf("%d requests, the error is %v", reached.Load(), err)
	}
}

func TestATokenAnswerWithoutEndIsNotRead(t *testing.T) {
	var sent atomic.Int64
	g := newGuarded(t, good())
	g.token = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 100 {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}
	b, _ := g.bed(t, v1alpha1.ClientCredentials{})
	if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "longer than 256 KiB") {
		t.Errorf("the error is %v", err)
	}
	g.Close() // waits for its handlers
	if sent.Load() > 40<<20 {
		t.Errorf("%d MB were taken", sent.Load()>>20)
	}
}

func TestARefusedClientIsReportedAndNotTriedAgain(t *testing.T) {
	g := newGuarded(t, good())
	g.token = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"\u001b[2J%s is wrong"}`, clientSecretValue)
	}
	b, _ := g.bed(t, v1alpha1.ClientCredentials{})
	for range 3 {
		_, err := b.pool.Several(t.Context(), &b.def, "")
		if reason.Of(err) != reason.CredentialRejected || !strings.Contains(err.Error(), "spec.source.mcp.http.auth.clientCredentials") || !strings.Contains(err.Error(), "invalid_client") {
			t.Fatalf("the error is %v", err)
		}
		if strings.Contains(err.Error(), clientSecretValue) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("the error repeats the answer: %q", err)
		}
	}
	if forms, _ := g.requests(); len(forms) != 1 {
		t.Errorf("the client was tried %d times", len(forms))
	}
}

func TestATokenThatTheServerRefusesIsReported(t *testing.T) {
	g := newGuarded(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }))
	b, _ := g.bed(t, v1alpha1.ClientCredentials{})
	if _, err := b.pool.Several(t.Context(), &b.def, ""); reason.Of(err) != reason.CredentialRejected || !strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("the error is %v", err)
	}
}

func TestTokensThatCannotBeKeptSecretAreRefused(t *testing.T) {
	for answer, wants := range map[string]string{
		`{"access_token":"abc","token_type":"Bearer"}`:                                 "3 characters",
		`{"access_token":"abc def\nX: y","token_type":"Bearer"}`:                       "a space, a line break",
		`{"access_token":"abcdefgh","token_type":"mac"}`:                               "not a bearer token",
		`{"access_token":"` + strings.Repeat("x", 20<<10) + `","token_type":"Bearer"}`: "20480 characters",
		`{"token_type":"Bearer"}`:                                                      "access_token",
	} {
		g := newGuarded(t, good())
		g.token = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		}
		b, learned := g.bed(t, v1alpha1.ClientCredentials{})
		if _, err := b.pool.Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), wants) || len(learned()) > 0 {
			t.Errorf("%.60s: the error is %v", answer, err)
		}
	}
}

// A function that demands more scopes is a failed call; the others go on.
func TestAMissingScopeFailsTheCall(t *testing.T) {
	inner := good()
	var strict atomic.Bool
	g := newGuarded(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strict.Load() {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	b, _ := g.bed(t, v1alpha1.ClientCredentials{Scopes: []string{"read"}})
	echo := b.function("echo")
	strict.Store(true)
	if r, err := b.call(t.Context(), echo, `{}`, nil); err != nil || !r.Failed || !strings.Contains(r.Output, `the scopes "read"`) {
		t.Errorf("%+v, %v", r, err)
	}
	strict.Store(false)
	if r, err := b.call(t.Context(), echo, `{}`, nil); err != nil || r.Failed {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestATokenIsNotObtainedWhereNothingHidesIt(t *testing.T) {
	g := newGuarded(t, good())
	b, _ := g.bed(t, v1alpha1.ClientCredentials{})
	at := b.pool.Options()
	at.Learn = nil
	if _, err := tool.NewPool(at).Several(t.Context(), &b.def, ""); err == nil || !strings.Contains(err.Error(), "nothing here removes the token") {
		t.Errorf("the error is %v", err)
	}
	if forms, _ := g.requests(); len(forms) > 0 {
		t.Errorf("%q", forms)
	}
}
