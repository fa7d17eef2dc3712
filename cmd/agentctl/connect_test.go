package main

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// providerOf says how a Model speaks a wire format.
var providerOf = map[string]string{
	"chat": "provider: openai", "responses": "provider: openai\n  api: responses", "anthropic": "provider: anthropic", "gemini": "provider: gemini",
}

// A password and a key that may be seen nowhere.
const (
	canaryPassword = "canary-of-a-proxy-42"
	canaryKey      = "canary-of-a-model-0123456789"
)

// secureModel is a model server behind TLS with a certificate of its own; file
// holds it. The certificate is for 127.0.0.1 and for example.com and below.
func secureModel(t *testing.T, wire modeltest.Wire) (server *httptest.Server, file string) {
	t.Helper()
	s, err := modeltest.Options{Wire: wire, Respond: func(modeltest.Request) modeltest.Step { return modeltest.Answer{Text: "an answer"}.Step() }}.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server = httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = nil
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	put(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return server, file
}

// asked is how a run ended that asks a model once.
type asked struct {
	code   int
	output string // stdout and stderr
}

// ask runs an agent on a model at an address, with variables and nothing else
// of this test's environment that says how to get there.
func ask(t *testing.T, wire, address string, env ...string) asked {
	t.Helper()
	work := t.TempDir()
	file := filepath.Join(work, "agent.yaml")
	put(t, file, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}}\n---\n"+
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  "+providerOf[wire]+"\n  model: x\n  baseURL: "+address+
		"\n  apiKey: {valueFrom: {env: KEY}}\n  retry: {attempts: 1}\n")
	cmd := exec.CommandContext(t.Context(), "agentctl", "run", "-f", file, "-p", "go", "--workspace", t.TempDir())
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "AGENTCTL_STATE":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	state := filepath.Join(work, "state")
	cmd.Env = append(cmd.Env, "AGENTCTL_STATE="+state, "KEY="+canaryKey)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text := string(out)
	err = filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canaryPassword)) || bytes.Contains(b, []byte(canaryKey)) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, canaryPassword) || strings.Contains(text, canaryKey) {
		t.Errorf("a secret is shown:\n%s", text)
	}
	return asked{cmd.ProcessState.ExitCode(), text}
}

// TestWithoutAKeyTheHintNamesTheProvidersOwnVariable asks servers that want one.
func TestWithoutAKeyTheHintNamesTheProvidersOwnVariable(t *testing.T) {
	variables := map[string]string{"chat": "OPENAI_API_KEY", "responses": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
	for _, wire := range modeltest.Wires() {
		server, err := modeltest.Options{Wire: wire}.Serve(modeltest.Refuse(http.StatusUnauthorized, nil, wire.Fault(http.StatusUnauthorized, "no key", "")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		file := filepath.Join(t.TempDir(), "agent.yaml")
		put(t, file, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}}\n---\n"+
			"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  "+providerOf[wire.Name()]+"\n  model: x\n  baseURL: "+server.URL+"\n")
		cmd := exec.CommandContext(t.Context(), "agentctl", "run", "-f", file, "-p", "go", "--workspace", t.TempDir(), "--state", t.TempDir())
		// A key that no manifest names is never used.
		cmd.Env = append(os.Environ(), variables[wire.Name()]+"="+canaryKey)
		out, _ := cmd.CombinedOutput() // the code says it
		asked{cmd.ProcessState.ExitCode(), string(out)}.want(t, 4, "CredentialRejected", "{valueFrom: {env: "+variables[wire.Name()]+"}}")
		if r := server.Requests(); len(r) != 1 || wire.Key(r[0].Header) != "" {
			t.Errorf("%s: %d requests, with a key: %t", wire.Name(), len(r), len(r) > 0 && wire.Key(r[0].Header) != "")
		}
	}
}

func (a asked) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("exit code %d, want %d:\n%s", a.code, code, a.output)
	}
	for _, text := range texts {
		if !strings.Contains(a.output, text) {
			t.Errorf("nothing says %q:\n%s", text, a.output)
		}
	}
}

func TestACertificateOfOnesOwn(t *testing.T) {
	for _, wire := range modeltest.Wires() {
		t.Run(wire.Name(), func(t *testing.T) {
			t.Parallel()
			server, file := secureModel(t, wire)
			address := server.URL + wire.Base()
			ask(t, wire.Name(), address).want(t, 8, "ProviderUnavailable", "SSL_CERT_FILE")
			ask(t, wire.Name(), address, "SSL_CERT_FILE="+file).want(t, 0, "an answer")
			ask(t, wire.Name(), address, "SSL_CERT_DIR="+filepath.Dir(file), "SSL_CERT_FILE=/dev/null").want(t, 0, "an answer")
			other := strings.Replace(address, "127.0.0.1", "localhost", 1)
			ask(t, wire.Name(), other, "SSL_CERT_FILE="+file).want(t, 8, "the certificate is for another host")
		})
	}
}

// connectProxy takes CONNECT requests, and others for http addresses, and sends
// all to one server, whatever host is asked for.
type connectProxy struct {
	*httptest.Server
	to     string
	login  string // wanted, or ""
	status int    // of the refusal of those that log in, or 0

	mu    sync.Mutex
	asked []string // method, host and whether a login came
	wg    sync.WaitGroup
}

func newProxy(t *testing.T, to string) *connectProxy {
	t.Helper()
	p := &connectProxy{to: strings.TrimPrefix(strings.TrimPrefix(to, "https://"), "http://")}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() { p.Close(); p.wg.Wait() })
	return p
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	switch given := r.Header.Get("Proxy-Authorization"); {
	case p.login != "" && given != "Basic "+base64.StdEncoding.EncodeToString([]byte(p.login)):
		http.Error(w, "who are you? not "+given, http.StatusProxyAuthRequired)
		return
	case p.status != 0:
		http.Error(w, "no", p.status)
		return
	case r.Method != http.MethodConnect:
		p.forward(w, r)
		return
	}
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	p.wg.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() }) // either end may go first
	p.wg.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
}

func (p *connectProxy) forward(w http.ResponseWriter, r *http.Request) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+p.to+r.URL.RequestURI(), r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// requests returns what the proxy was asked since it was last looked at.
func (p *connectProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.asked
	p.asked = nil
	return all
}

func (p *connectProxy) want(t *testing.T, want ...string) {
	t.Helper()
	if got := p.requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the proxy was asked %q, want %q", got, want)
	}
}

func TestRequestsPassTheProxy(t *testing.T) {
	for _, wire := range modeltest.Wires() {
		t.Run(wire.Name(), func(t *testing.T) {
			t.Parallel()
			server, file := secureModel(t, wire)
			address, trust := "https://model.example.com"+wire.Base(), "SSL_CERT_FILE="+file
			proxy := newProxy(t, server.URL)
			passed := "CONNECT model.example.com:443"

			ask(t, wire.Name(), address, trust, "HTTPS_PROXY="+proxy.URL).want(t, 0, "an answer")
			proxy.want(t, passed)
			ask(t, wire.Name(), address, trust, "https_proxy="+proxy.URL).want(t, 0, "an answer")
			proxy.want(t, passed)
			ask(t, wire.Name(), address, "HTTPS_PROXY="+proxy.URL).want(t, 8, "SSL_CERT_FILE")
			proxy.want(t, passed)

			proxy.login = "me:" + canaryPassword
			login := strings.Replace(proxy.URL, "http://", "http://me:"+canaryPassword+"@", 1)
			ask(t, wire.Name(), address, trust, "HTTPS_PROXY="+login).want(t, 0, "an answer")
			proxy.want(t, passed)
			ask(t, wire.Name(), address, trust, "HTTPS_PROXY="+proxy.URL).want(t, 8, "ProviderUnavailable", "the proxy answered 407", "the proxy wants a login")
			proxy.want(t, passed)

			// What a proxy refuses says nothing about the key of the model.
			proxy.status = http.StatusForbidden
			ask(t, wire.Name(), address, trust, "HTTPS_PROXY="+login).want(t, 8, "ProviderUnavailable", "the proxy answered 403 Forbidden when asked for model.example.com:443")
			proxy.want(t, passed)
			proxy.status = http.StatusBadGateway
			ask(t, wire.Name(), address, trust, "HTTPS_PROXY="+login).want(t, 8, "ProviderUnavailable", "the proxy answered 502 Bad Gateway", "NO_PROXY")
			proxy.want(t, passed)
		})
	}
}

func TestProxiesThatAreNotAsked(t *testing.T) {
	server, file := secureModel(t, modeltest.Chat)
	proxy := newProxy(t, server.URL)
	on := "HTTPS_PROXY=" + proxy.URL
	// The host itself takes no proxy, nor what NO_PROXY names.
	ask(t, "chat", server.URL+"/v1", "SSL_CERT_FILE="+file, on).want(t, 0, "an answer")
	proxy.want(t)
	ask(t, "chat", "https://model.invalid/v1", "SSL_CERT_FILE="+file, on, "NO_PROXY=.invalid").want(t, 8, "ProviderUnavailable")
	proxy.want(t)
	// One for http addresses is not one for https.
	ask(t, "chat", "https://model.invalid/v1", "HTTP_PROXY="+proxy.URL).want(t, 8, "ProviderUnavailable")
	proxy.want(t)
	// An address that cannot be read is not passed by, and not shown.
	broken := "HTTPS_PROXY=http://me:" + canaryPassword + "%zz@127.0.0.1:3128"
	ask(t, "chat", "https://model.example.com/v1", broken).want(t, 8, "ProviderUnavailable", "HTTPS_PROXY holds no address of a proxy", "http://host:port")
	ask(t, "chat", server.URL+"/v1", "SSL_CERT_FILE="+file, broken).want(t, 0, "an answer")
	ask(t, "chat", "https://model.example.com/v1", "HTTPS_PROXY=http://me:"+canaryPassword+" @127.0.0.1:3128").
		want(t, 8, "ProviderUnavailable", "the proxy of HTTPS_PROXY or HTTP_PROXY cannot be reached")
	gone := newProxy(t, server.URL)
	gone.Close()
	ask(t, "chat", "https://model.example.com/v1", "HTTPS_PROXY="+strings.Replace(gone.URL, "http://", "http://me:"+canaryPassword+"@", 1)).
		want(t, 8, "ProviderUnavailable", "the proxy of HTTPS_PROXY or HTTP_PROXY cannot be reached")
}

func TestAProxyForPlainAddresses(t *testing.T) {
	plain, err := modeltest.NewServer(modeltest.Answer{Text: "an answer"}.Step())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	proxy := newProxy(t, strings.TrimSuffix(plain.URL, "/v1"))
	proxy.login = "me:" + canaryPassword
	login := strings.Replace(proxy.URL, "http://", "http://me:"+canaryPassword+"@", 1)
	ask(t, "chat", "http://model.example.com/v1", "HTTP_PROXY="+login).want(t, 0, "an answer")
	proxy.want(t, "POST model.example.com")
	// This proxy repeats what it was given.
	ask(t, "chat", "http://model.example.com/v1", "http_proxy="+strings.Replace(login, "me:", "you:", 1)).
		want(t, 8, "ProviderUnavailable", "407", "the proxy wants a login")
	proxy.want(t, "POST model.example.com")
}

// TestOneConnectionForAllModelsOfARun lets a model, its fallback and the one that
// writes summaries answer twenty steps at one endpoint.
func TestOneConnectionForAllModelsOfARun(t *testing.T) {
	libexec := buildTools(t)
	steps, told := 0, map[string]int{}
	server, err := modeltest.Options{Unchecked: true, Respond: func(r modeltest.Request) modeltest.Step {
		for _, name := range []string{"own", "second", "summary"} {
			if bytes.Contains(r.Body, []byte(`"model":"`+name+`"`)) {
				told[name]++
				switch name {
				case "own":
					return modeltest.Refuse(http.StatusServiceUnavailable, http.Header{"Retry-After": {"3600"}}, `{"error":{"message":"come back in an hour"}}`)
				case "summary":
					return modeltest.Answer{Text: "what happened so far: little"}.Step()
				}
			}
		}
		if steps++; steps == 20 {
			return modeltest.Answer{Text: "done"}.Step()
		}
		return modeltest.Answer{Calls: []modeltest.Call{{ID: fmt.Sprintf("c%d", steps), Tool: "bash", Args: fmt.Sprintf(`{"command":"seq %d000 %d999"}`, steps, steps)}}}.Step()
	}}.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	text := strings.Replace(manifest("allow", "provider: openai\n  model: own\n  baseURL: "+server.URL+"\n  contextWindow: 12000\n  fallbacks: [{name: second}]"),
		"policyRefs: [{name: p}]", "policyRefs: [{name: p}], context: {modelRef: {name: sum}, keepRecentTokens: 3000, pruneToolOutput: false}", 1)
	for name, model := range map[string]string{"second": "second", "sum": "summary"} {
		text += "---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: " + name + "}\nspec: {provider: openai, model: " + model + ", baseURL: \"" + server.URL + "\", contextWindow: 100000}\n"
	}
	began := time.Now()
	l := begin(t, libexec, text)
	l.until(t, "")
	if err := l.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, l.stderr.String())
	}
	t.Logf("20 steps in %s: %v", time.Since(began), told)
	connections := map[string]int{}
	for _, r := range server.Requests() {
		connections[r.Remote]++
	}
	if told["own"] != 1 || told["second"] != 20 || told["summary"] == 0 {
		t.Errorf("asked were %v", told)
	}
	if len(connections) != 1 {
		t.Errorf("requests by connection: %v", connections)
	}
}
