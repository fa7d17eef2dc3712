package runapi

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded"
)

//go:embed testdata/browser.html
var attackPage string

// task is what the page is asked to do.
type task struct {
	Servers  map[string]victim `json:"servers"`
	Token    string            `json:"token"`
	Protocol string            `json:"protocol"`
	Body     string            `json:"body"`
	Report   string            `json:"report"`
	Sandbox  string            `json:"sandbox,omitempty"` // the page in the frame
	Rebound  bool              `json:"rebound,omitempty"`
}

// victim is where a server has what the page wants.
type victim struct {
	Run    string `json:"run"`
	Begin  string `json:"begin"`
	Socket string `json:"socket"`
}

func victimAt(address, ns string) victim {
	return victim{
		Run: "https://" + address + apis(ns) + "runs/browsed", Begin: "https://" + address + apis(ns) + "agents/worker/runs",
		Socket: "wss://" + address + "/ws/" + ns + "/browsed",
	}
}

func (k task) page(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(k) // escapes what would end the script
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(attackPage, "TASK", string(text), 1)
}

// attempts is what a page reports: its origin, and what became of each attempt.
type attempts struct {
	Origin string            `json:"origin"`
	Told   map[string]string `json:"told"`
}

// TestForeignPageCanDoNothing has a browser show pages of foreign origins, which have a
// token of an admin and try everything that a page can. Next to our server there is one
// that forbids nothing: an attempt that fails there too proves nothing.
func TestForeignPageCanDoNothing(t *testing.T) {
	t.Parallel()
	program := browser(t)
	p := sharedPlane(t)
	ns := p.settle(t, "browsed")
	p.make(t, ns, "runs", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "browsed"}, "spec": {"agentRef": {"name": "later"}}}`)
	ours := strings.TrimPrefix(p.server.URL(), "https://")
	open := newOpenServer(t)
	attacker := newAttacker(t)
	k := task{
		Servers: map[string]victim{"ours": victimAt(ours, ns), "open": victimAt(open.Listener.Addr().String(), ns)},
		Token:   p.token(t, "stolen", embedded.RoleAdmin), Protocol: subprotocol, Report: attacker.plain.URL + "/report",
		Body: `{"prompt": "go", "name": "made-by-a-page"}`,
	}
	boxed := k
	boxed.Sandbox = k.page(t)
	attacker.serve("/page", k.page(t))
	attacker.serve("/boxed", boxed.page(t))
	_, plain, _ := strings.Cut(attacker.plain.URL, "://127.0.0.1")
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(k.page(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	// A page whose name leads to the attacker at first and to a server afterwards
	// has that server's port.
	rebound := func(name, address string) string {
		_, port, _ := net.SplitHostPort(address)
		host := name + ".example:" + port
		own := k
		own.Servers, own.Rebound = map[string]victim{name: victimAt(host, ns)}, true
		// Reported to another host: its own leads elsewhere by then.
		attacker.rebind(host, address, own.page(t))
		return "https://" + host + "/rebind"
	}
	for name, c := range map[string]struct {
		url, origin string
		servers     int
	}{
		"another port of this machine":  {attacker.plain.URL + "/page", attacker.plain.URL, 2},
		"another name of this machine":  {"http://localhost" + plain + "/page", "http://localhost" + plain, 2},
		"a site of the network":         {"https://evil.example/page", "https://evil.example", 2},
		"a sandboxed frame":             {attacker.plain.URL + "/boxed", "null", 2},
		"a file":                        {"file://" + file, "null", 2},
		"a name that led elsewhere":     {rebound("ours", ours), "https://ours.example", 1},
		"the same, to the other server": {rebound("open", open.Listener.Addr().String()), "https://open.example", 1},
	} {
		got := attacker.show(t, program, c.url)
		if !strings.HasPrefix(got.Origin, c.origin) {
			t.Fatalf("%s: the page is of origin %q, want %q", name, got.Origin, c.origin)
		}
		if len(got.Told) != 14*c.servers {
			t.Fatalf("%s: %d attempts: %q", name, len(got.Told), got)
		}
		for what, became := range got.Told {
			read := strings.HasPrefix(became, "read: ")
			switch server, how, _ := strings.Cut(what, ": "); {
			case server == "ours" && read && !strings.Contains(became, `"code":403`):
				t.Errorf("%s: %s: %s", name, how, became)
			case server == "open" && !read && !strings.Contains(became, "cannot be read"):
				t.Errorf("%s: %s is not an attempt at all: %s", name, how, became)
			}
		}
	}
	// Five ways from six origins; a last one may be on its way when a browser ends.
	if n := open.begun.Load(); n < 6*4 {
		t.Errorf("the open server was told %d times to begin a run", n)
	}
	_, text := p.ask(t, "GET", apis(ns)+"runs", p.admin, "", nil)
	if strings.Contains(text, "made-by-a-page") || !strings.Contains(text, `"name":"browsed"`) || strings.Contains(text, `"cancel":true`) {
		t.Errorf("a page has changed something: %s", text)
	}
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium, which is not installed here")
	return ""
}

// openServer lets every page do everything.
type openServer struct {
	*httptest.Server
	begun atomic.Int32
}

func newOpenServer(t *testing.T) *openServer {
	t.Helper()
	o := &openServer{}
	o.Server = httptest.NewUnstartedServer(o)
	o.Config.ErrorLog = log.New(io.Discard, "", 0) // browsers connect for nothing
	o.StartTLS()
	t.Cleanup(o.Close)
	return o
}

func (o *openServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isSocket(r) {
		if c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{subprotocol}}); err == nil {
			_ = c.CloseNow()
		}
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Allow-Headers", "authorization, content-type")
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
	h.Set("Access-Control-Allow-Private-Network", "true")
	switch {
	case r.Method == http.MethodPost:
		o.begun.Add(1)
	case r.Header.Get("Accept") == "text/event-stream":
		h.Set("Content-Type", "text/event-stream")
	case r.Header.Get("Sec-Fetch-Dest") == "script":
		h.Set("Content-Type", "text/javascript")
	}
	_, _ = io.WriteString(w, "\n\n")
}

// attacker serves the pages, on this machine and, by the proxy of the browser, as
// any host.
type attacker struct {
	plain, secure, proxy *httptest.Server
	reports              chan attempts

	mu      sync.Mutex
	pages   map[string]string     // by path
	rebound map[string]*rebinding // by host and port
}

// rebinding is a name that leads to a page first and to a server afterwards.
type rebinding struct {
	page, then string
	served     bool
}

func newAttacker(t *testing.T) *attacker {
	t.Helper()
	a := &attacker{reports: make(chan attempts, 8), pages: map[string]string{}, rebound: map[string]*rebinding{}}
	a.plain = httptest.NewServer(a)
	a.secure = httptest.NewUnstartedServer(a)
	a.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.secure.Config.SetKeepAlivesEnabled(false) // so that a name can lead elsewhere
	a.secure.TLS = &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}
	a.secure.StartTLS()
	a.proxy = httptest.NewServer(http.HandlerFunc(a.connect))
	for _, s := range []*httptest.Server{a.plain, a.secure, a.proxy} {
		t.Cleanup(func() {
			s.CloseClientConnections()
			s.Close()
		})
	}
	return a
}

func (a *attacker) serve(path, page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages[path] = page
}

func (a *attacker) rebind(host, then, page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rebound[host] = &rebinding{page: page, then: then}
}

func (a *attacker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	if r.URL.Path == "/report" {
		var got attempts
		if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&got) == nil {
			a.reports <- got
		}
	}
	_, _ = io.WriteString(w, a.page(r))
}

// page is what a browser is shown.
func (a *attacker) page(r *http.Request) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b := a.rebound[r.Host]; b != nil && r.URL.Path == "/rebind" {
		b.served = true
		return b.page
	}
	if page, ok := a.pages[r.URL.Path]; ok {
		return page
	}
	return "here"
}

// connect is the proxy of the browser: it resolves names.
func (a *attacker) connect(w http.ResponseWriter, r *http.Request) {
	to := a.secure.Listener.Addr().String()
	a.mu.Lock()
	if b := a.rebound[r.Host]; b != nil && b.served {
		to = b.then
	}
	a.mu.Unlock()
	if r.Method != http.MethodConnect || !strings.Contains(r.Host, ".example:") {
		http.Error(w, "the browser calls its maker", http.StatusForbidden)
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, buffered)
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
}

// show has a browser show a page and returns what the page reports.
func (a *attacker) show(t *testing.T, program, page string) attempts {
	t.Helper()
	home := t.TempDir()
	proxy, err := url.Parse(a.proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+home,
		"--ignore-certificate-errors", // else no page would get as far as our server
		// Newer browsers ask a person before a page may reach this machine: the result
		// must not depend on the answer, nor on the version.
		"--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessSendPreflights,BlockInsecurePrivateNetworkRequests,HttpsUpgrades",
		"--proxy-server="+proxy.Host, "--remote-debugging-pipe", page)
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home) // what it makes there it leaves behind
	var said controltest.Log
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it has many children
	cmd.WaitDelay = 10 * time.Second
	// The other ends of its pipe: it ends without them.
	in, out, err := pipes()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeAll(append(in[:], out[:]...)) }()
	cmd.ExtraFiles = []*os.File{in[0], out[1]}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it is killed
	}()
	select {
	case got := <-a.reports:
		return got
	case <-ctx.Done():
		t.Fatalf("%s: the page reports nothing: %s", page, said.String())
		return attempts{}
	}
}

func pipes() (in, out [2]*os.File, err error) {
	if in[0], in[1], err = os.Pipe(); err == nil {
		out[0], out[1], err = os.Pipe()
	}
	return in, out, err
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		if e := f.Close(); e != nil {
			err = fmt.Errorf("close: %w", e)
		}
	}
	return err
}
