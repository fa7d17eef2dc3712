package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// office is an authorization server for people, at the host of an MCP server.
type office struct {
	*guarded
	t     *testing.T
	state string
	// answer changes what the browser is sent back with, and where; nil changes nothing.
	answer func(back *url.URL, q url.Values)

	lock       sync.Mutex
	challenges map[string]string // of PKCE, by code
	asked      []url.Values
	registered int
	refreshed  int
	refresh    string // the only refresh token that is valid
	rejects    bool
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{guarded: newGuarded(t, good()), t: t, state: t.TempDir(), challenges: map[string]string{}}
	o.issuer["registration_endpoint"], o.issuer["authorization_response_iss_parameter_supported"] = o.URL+"/register", true
	o.issuer["scopes_supported"] = []string{"files.read", "offline_access"}
	mux := http.NewServeMux()
	mux.Handle("/", o.Config.Handler)
	mux.HandleFunc("/register", o.serveRegister)
	mux.HandleFunc("/authorize", o.serveAuthorize)
	o.Config.Handler = mux
	o.token = o.serveToken
	return o
}

func (o *office) serveRegister(w http.ResponseWriter, r *http.Request) {
	var meta map[string]any
	_ = json.NewDecoder(r.Body).Decode(&meta)
	o.lock.Lock()
	defer o.lock.Unlock()
	o.registered++
	meta["client_id"] = fmt.Sprintf("client-%d", o.registered)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(meta)
}

func (o *office) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	o.lock.Lock()
	defer o.lock.Unlock()
	q := r.URL.Query()
	o.asked = append(o.asked, q)
	code := fmt.Sprintf("code-%d", len(o.asked))
	o.challenges[code] = q.Get("code_challenge")
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("resource") != o.URL+"/mcp" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {o.URL}}
	if o.answer != nil {
		o.answer(back, answer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (o *office) serveToken(w http.ResponseWriter, r *http.Request) {
	o.lock.Lock()
	defer o.lock.Unlock()
	refuse := func(text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": text})
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		want, known := o.challenges[r.PostFormValue("code")]
		delete(o.challenges, r.PostFormValue("code"))
		if !known || want != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse("the code is not yours")
			return
		}
	case "refresh_token":
		if o.rejects || o.refresh == "" || r.PostFormValue("refresh_token") != o.refresh {
			refuse("\x1b[2Jthe session is over: " + r.PostFormValue("refresh_token"))
			return
		}
		o.refreshed++
	default:
		refuse("no such grant")
		return
	}
	if r.PostFormValue("resource") != o.URL+"/mcp" {
		refuse("for which server?")
		return
	}
	o.refresh = fmt.Sprintf("refresh-token-%d", o.refreshed)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"access-token-%d","token_type":"Bearer","expires_in":%d,"refresh_token":%q}`, o.refreshed, o.expires, o.refresh)
}

// bed is a run, or a login, with the state folder of the office.
func (o *office) bed(with v1alpha1.AuthorizationCode) *bed {
	o.t.Helper()
	return newBedOf(o.t, o.state, &v1alpha1.MCPSource{HTTP: &v1alpha1.MCPHTTP{URL: o.URL + "/mcp", Auth: &v1alpha1.MCPAuth{AuthorizationCode: &with}}}, func(p *tool.PoolOptions) {
		p.Learn = func(string) {}
		if with.ClientSecret != nil {
			p.Secrets = map[string]map[string]string{"s": {oauth.ClientSecret: clientSecretValue}}
		}
	})
}

func (o *office) login(with v1alpha1.AuthorizationCode, person oauth.Person) (*LoggedIn, error) {
	o.t.Helper()
	b := o.bed(with)
	return Login(o.t.Context(), b.pool, &b.def, person)
}

// kept is what the store holds.
func (o *office) kept() string {
	o.t.Helper()
	logins := keys.LoginsOf(o.state)
	names, err := logins.Names()
	if err != nil {
		o.t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		text, _, err := logins.Get(name)
		if err != nil {
			o.t.Fatal(err)
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

func TestAPersonLogsInAndRunsUseTheLogin(t *testing.T) {
	o := newOffice(t)
	b := o.bed(v1alpha1.AuthorizationCode{})
	_, err := b.pool.Several(t.Context(), &b.def, "")
	if reason.Of(err) != reason.CredentialMissing || !strings.Contains(reason.Hint(err), "agentctl auth login s -f") {
		t.Fatalf("without a login: %v, %s", err, reason.Hint(err))
	}
	o.lock.Lock()
	if len(o.asked) > 0 {
		t.Errorf("a run has begun a login: %v", o.asked)
	}
	o.lock.Unlock()
	var shown oauth.Visit
	in, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: func(ctx context.Context, v oauth.Visit) error {
		shown = v
		return browse(ctx, v)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if in.Functions == 0 || in.State != oauth.Valid || in.Issuer != o.URL || !in.Renewable || in.Client != "client-1" || strings.Join(in.Scopes, " ") != "offline_access" {
		t.Errorf("%+v", in)
	}
	if text, _ := json.Marshal(in); strings.Contains(string(text), "token-") {
		t.Errorf("a token is shown: %s", text)
	}
	if shown.Server != strings.TrimPrefix(o.URL, "http://") || shown.Issuer != shown.Server || !strings.HasPrefix(shown.Redirect, "http://127.0.0.1:") {
		t.Errorf("%+v", shown)
	}
	b = o.bed(v1alpha1.AuthorizationCode{})
	if r := b.answer("echo", `{"text":"hi"}`); r.Failed {
		t.Errorf("%+v", r)
	}
	// The same client is used again, at the same port.
	if in, err = o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil || in.Client != "client-1" {
		t.Errorf("%+v, %v", in, err)
	}
	files := 0
	for _, pattern := range []string{"login_*", ".login_*"} {
		found, _ := filepath.Glob(filepath.Join(o.state, "logins", pattern))
		for _, name := range found {
			if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
			files++
		}
	}
	if info, err := os.Stat(filepath.Join(o.state, "logins")); err != nil || info.Mode().Perm() != 0o700 || files != 2 {
		t.Errorf("%v, %v, %d files", info, err, files)
	}
	logins, err := oauth.Logins(keys.LoginsOf(o.state), time.Now())
	if err != nil || len(logins) != 1 || logins[0].Tool != "s" {
		t.Errorf("%+v, %v", logins, err)
	}
	gone, left, err := oauth.Logout(t.Context(), keys.LoginsOf(o.state), "s", "", time.Now())
	if err != nil || len(gone) != 1 || len(left) != 0 || o.kept() != "" {
		t.Errorf("%+v, %v, %v", gone, left, err)
	}
}

// A login is renewed by one of the runs that use it, and the others use what it got: the
// authorization server takes each refresh token once.
func TestRunsRenewALoginOneAfterTheOther(t *testing.T) {
	o := newOffice(t)
	o.expires = 1
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	o.lock.Lock()
	o.expires = 3600
	o.lock.Unlock()
	var runs sync.WaitGroup
	for range 8 {
		b := o.bed(v1alpha1.AuthorizationCode{})
		runs.Go(func() {
			if _, err := b.pool.Several(t.Context(), &b.def, ""); err != nil {
				t.Errorf("a run: %v", err)
			}
		})
	}
	runs.Wait()
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.refreshed != 1 || !strings.Contains(o.kept(), `"refresh-token-1"`) {
		t.Errorf("renewed %d times: %s", o.refreshed, o.kept())
	}
}

func TestALoginThatIsOverNamesTheCommand(t *testing.T) {
	o := newOffice(t)
	o.expires = 1
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	o.lock.Lock()
	o.rejects = true
	o.lock.Unlock()
	for range 2 {
		b := o.bed(v1alpha1.AuthorizationCode{})
		_, err := b.pool.Functions(t.Context(), &b.def)
		if reason.Of(err) != reason.CredentialRejected || !strings.Contains(reason.Hint(err), "agentctl auth login s -f") || !strings.Contains(err.Error(), "invalid_grant") {
			t.Errorf("%v, %s", err, reason.Hint(err))
		}
		if strings.Contains(err.Error(), "refresh-token") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("the error repeats the answer: %q", err)
		}
	}
	if forms, _ := o.requests(); len(forms) != 2 {
		t.Errorf("a login that is over was tried again: %d requests", len(forms))
	}
	if logins, err := oauth.Logins(keys.LoginsOf(o.state), time.Now()); err != nil || logins[0].State != oauth.Ended || strings.Contains(o.kept(), "token-") {
		t.Errorf("%+v, %v, %s", logins, err, o.kept())
	}
}

func TestALoginWithoutARefreshTokenExpires(t *testing.T) {
	o := newOffice(t)
	o.token = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"access-token-1","token_type":"Bearer","expires_in":1}`)
	}
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	b := o.bed(v1alpha1.AuthorizationCode{})
	_, err := b.pool.Functions(t.Context(), &b.def)
	if reason.Of(err) != reason.CredentialRejected || !strings.Contains(err.Error(), "has expired") || !strings.Contains(reason.Hint(err), "agentctl auth login s") {
		t.Errorf("%v", err)
	}
}

// Whatever the browser is sent back with that is not the answer to this login gets nothing.
func TestForgedAnswersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(back *url.URL, q url.Values)
		set    func(o *office)
		wants  string
	}{
		"of another issuer (mix-up)": {answer: func(_ *url.URL, q url.Values) { q.Set("iss", "https://login.example.com") }, wants: "is from https://login.example.com, and not from"},
		"without the promised issuer": {
			answer: func(_ *url.URL, q url.Values) { q.Del("iss") }, wants: "does not say that it is from",
		},
		"of two issuers": {answer: func(_ *url.URL, q url.Values) { q.Add("iss", "https://login.example.com") }, wants: "and not from"},
		"of an issuer that differs by a slash": {
			answer: func(_ *url.URL, q url.Values) { q.Set("iss", q.Get("iss")+"/") }, wants: "and not from",
		},
		"with two codes": {answer: func(_ *url.URL, q url.Values) { q.Add("code", "another") }, wants: "no authorization code"},
		"with the code of somebody else": {
			answer: func(_ *url.URL, q url.Values) { q.Set("code", "code-of-another") }, wants: "refuses the authorization code",
		},
		"with an error": {
			answer: func(_ *url.URL, q url.Values) {
				q.Del("code")
				q.Set("error", "access_denied")
				q.Set("error_description", "\x1b[2Jno")
			},
			wants: "refuses: access_denied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.answer = c.answer
			_, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse})
			if err == nil || reason.Of(err) != reason.CredentialRejected || !strings.Contains(err.Error(), c.wants) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the error is %q", err)
			}
			if forms, _ := o.requests(); len(forms) > 1 || len(forms) == 1 && !strings.Contains(c.wants, "authorization code") {
				t.Errorf("a token was asked for: %q", forms)
			}
			if o.kept() != "" {
				t.Errorf("kept: %s", o.kept())
			}
		})
	}
}

// A page or program of this machine that guesses the address cannot end a login, nor be
// taken for its answer.
func TestAnAnswerWithAnotherStateIsIgnored(t *testing.T) {
	o := newOffice(t)
	_, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: func(ctx context.Context, v oauth.Visit) error {
		for _, forged := range []string{"?code=evil&state=guess", "?code=evil", "?code=evil&state=", "?error=access_denied&state=x"} {
			resp, err := http.Get(v.Redirect + forged) //nolint:noctx // a test's own server
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: status %d", forged, resp.StatusCode)
			}
		}
		return browse(ctx, v)
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestAPastedAddressMustBeThatOfTheLogin(t *testing.T) {
	o := newOffice(t)
	var at oauth.Visit
	end := func(ctx context.Context, v oauth.Visit) (string, error) { // the browser cannot open where it ends
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.URL, nil)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		return resp.Header.Get("Location"), resp.Body.Close()
	}
	for name, c := range map[string]struct {
		change func(address string) string
		wants  string
	}{
		"as it is":       {func(a string) string { return "  " + a + "\n" }, ""},
		"another port":   {func(a string) string { return strings.Replace(a, "http://127.0.0.1:", "http://127.0.0.1:1", 1) }, "nothing of it is used"},
		"another host":   {func(a string) string { return strings.Replace(a, "127.0.0.1", "login.example.com", 1) }, "nothing of it is used"},
		"another scheme": {func(a string) string { return strings.Replace(a, "http:", "https:", 1) }, "nothing of it is used"},
		"another path":   {func(a string) string { return strings.Replace(a, "/callback", "/other", 1) }, "nothing of it is used"},
		"another state":  {func(a string) string { return strings.Replace(a, "state=", "state=x", 1) }, "its state is not that of this one"},
		"two states":     {func(a string) string { return a + "&state=y" }, "its state is not that of this one"},
		"not an address": {func(string) string { return "code-1" }, "nothing of it is used"},
		"a long text":    {func(a string) string { return a + strings.Repeat("x", 40<<10) }, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{
				Visit: func(_ context.Context, v oauth.Visit) error { at = v; return nil },
				Paste: func(ctx context.Context) (string, error) {
					a, err := end(ctx, at)
					return c.change(a), err
				},
			})
			if c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// A server that names another authorization server after the login gets nothing: the login
// is renewed where it was made. Nor does a redirect of the server take the token along.
func TestChangedMetadataGetNoToken(t *testing.T) {
	var reached atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(thief.Close)
	o := newOffice(t)
	o.expires = 1
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	o.meta["authorization_servers"], o.issuer["token_endpoint"] = []string{thief.URL}, thief.URL+"/token"
	b := o.bed(v1alpha1.AuthorizationCode{})
	if r := b.answer("echo", `{}`); r.Failed {
		t.Errorf("%+v", r)
	}
	redirects := &atomic.Bool{}
	o2 := newOffice(t)
	inner := o2.Config.Handler
	o2.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if redirects.Load() && r.URL.Path == "/mcp" {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			return
		}
		inner.ServeHTTP(w, r)
	})
	if _, err := o2.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	redirects.Store(true)
	b = o2.bed(v1alpha1.AuthorizationCode{})
	if _, err := b.pool.Functions(t.Context(), &b.def); err == nil || !strings.Contains(err.Error(), "does not name") {
		t.Errorf("the error is %v", err)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the other host got %d requests", n)
	}
}

// A manifest that names the client's secret after the login needs another login: the one
// that is kept was made where no secret was to be sent.
func TestAClientsSecretNeedsItsOwnLogin(t *testing.T) {
	o := newOffice(t)
	o.expires = 1
	with := v1alpha1.AuthorizationCode{ClientID: "me"}
	if _, err := o.login(with, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	with.ClientSecret = &v1alpha1.ValueSource{}
	b := o.bed(with)
	_, err := b.pool.Several(t.Context(), &b.def, "")
	if reason.Of(err) != reason.CredentialMissing || !strings.Contains(reason.Hint(err), "agentctl auth login s -f") {
		t.Errorf("%v, %s", err, reason.Hint(err))
	}
	if forms, _ := o.requests(); len(forms) != 1 {
		t.Errorf("a token was asked for: %q", forms)
	}
	if _, err := o.login(with, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	b = o.bed(with)
	if r := b.answer("echo", `{"text":"hi"}`); r.Failed {
		t.Errorf("%+v", r)
	}
}

// Metadata is foreign: it is bounded, and leads to no service of this host or its network.
func TestHostileMetadataEndALogin(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		with  v1alpha1.AuthorizationCode
		set   func(o *office)
		paths map[string]http.HandlerFunc
		wants string
	}{
		"100 MB about the server":               {paths: map[string]http.HandlerFunc{"/.well-known/oauth-protected-resource/mcp": endless}, wants: "longer than 256 KiB"},
		"100 MB about the authorization server": {paths: map[string]http.HandlerFunc{"/.well-known/oauth-authorization-server": endless}, wants: "longer than 256 KiB"},
		"100 MB from the registration":          {paths: map[string]http.HandlerFunc{"/register": endless}, wants: "longer than 256 KiB"},
		"the address of a cloud's metadata":     {set: func(o *office) { o.meta["authorization_servers"] = []string{"https://169.254.169.254"} }, wants: "public address"},
		"a private address":                     {set: func(o *office) { o.meta["authorization_servers"] = []string{"https://10.0.0.1"} }, wants: "public address"},
		"a private address of IPv6":             {set: func(o *office) { o.meta["authorization_servers"] = []string{"https://[fd00::1]"} }, wants: "public address"},
		"a private address in one of IPv6":      {set: func(o *office) { o.meta["authorization_servers"] = []string{"https://[::ffff:10.0.0.1]"} }, wants: "public address"},
		"a registration at a private address":   {set: func(o *office) { o.issuer["registration_endpoint"] = "https://192.168.0.1/register" }, wants: "public address"},
		"no https":                              {set: func(o *office) { o.meta["authorization_servers"] = []string{"http://login.example.com"} }, wants: "authorization_servers"},
		"a page that is a script":               {set: func(o *office) { o.issuer["authorization_endpoint"] = "javascript:alert(1)" }, wants: "authorization_endpoint"},
		"no PKCE":                               {set: func(o *office) { o.issuer["code_challenge_methods_supported"] = []string{"plain"} }, wants: "PKCE with S256"},
		"metadata of another issuer":            {set: func(o *office) { o.issuer["issuer"] = "https://login.example.com" }, wants: "issuer"},
		"metadata of another server":            {set: func(o *office) { o.meta["resource"] = "https://mcp.example.com/mcp" }, wants: "resource"},
		"another issuer than the manifest's": {
			with: v1alpha1.AuthorizationCode{Issuer: "https://login.example.com"}, wants: "and not that of spec.source.mcp.http.auth.authorizationCode.issuer",
		},
		"another host for the secret of the manifest": {
			with: v1alpha1.AuthorizationCode{ClientID: "me", ClientSecret: &v1alpha1.ValueSource{}},
			set:  func(o *office) { o.meta["authorization_servers"] = []string{"https://login.example.com"} }, wants: "the secret is sent there if",
		},
		"no registration": {set: func(o *office) { delete(o.issuer, "registration_endpoint") }, wants: "clientID"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			if c.set != nil {
				c.set(o)
			}
			inner := o.Config.Handler
			o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if h := c.paths[r.URL.Path]; h != nil {
					h(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			})
			_, err := o.login(c.with, oauth.Person{Visit: func(context.Context, oauth.Visit) error { return errors.New("somebody was asked to log in") }})
			if err == nil || !strings.Contains(err.Error(), c.wants) || strings.Contains(err.Error(), clientSecretValue) {
				t.Errorf("the error is %v", err)
			}
			if o.kept() != "" {
				t.Errorf("kept: %s", o.kept())
			}
		})
	}
}

// A function that demands further scopes fails in a run, and the next login asks for them.
func TestTheNextLoginAsksForWhatARunLacked(t *testing.T) {
	o := newOffice(t)
	strict := &atomic.Bool{}
	inner := o.Config.Handler
	o.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strict.Load() && r.URL.Path == "/mcp" {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	})
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	b := o.bed(v1alpha1.AuthorizationCode{})
	echo := b.function("echo")
	strict.Store(true)
	if r, err := b.call(t.Context(), echo, `{}`, nil); err != nil || !r.Failed || !strings.Contains(r.Output, `"admin"`) || !strings.Contains(r.Output, "agentctl auth login s") {
		t.Errorf("%+v, %v", r, err)
	}
	strict.Store(false)
	in, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse})
	if err != nil || strings.Join(in.Scopes, " ") != "admin offline_access" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestALoginThatOthersCanReadIsNotUsed(t *testing.T) {
	o := newOffice(t)
	if _, err := o.login(v1alpha1.AuthorizationCode{}, oauth.Person{Visit: browse}); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(o.state, "logins", "login_*"))
	if err := os.Chmod(found[0], 0o644); err != nil { //nolint:gosec // what the test is about
		t.Fatal(err)
	}
	b := o.bed(v1alpha1.AuthorizationCode{})
	if _, err := b.pool.Functions(t.Context(), &b.def); reason.Of(err) != reason.CredentialMissing || !strings.Contains(err.Error(), "others may read") {
		t.Errorf("the error is %v", err)
	}
}
