package runapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"agentctl.dev/agentctl/runner/control"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared control plane:", err)
		code = 1
	}
	if code == 0 {
		// What the API server leaves is its own; runner/control/embedded looks at that.
		if err := goleak.Find(controltest.LeftByServer()...); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is the one API server that a process can have, with all that agentd puts
// around it.
var shared plane

type plane struct {
	once   sync.Once
	dir    string
	server *embedded.Server
	live   *Server
	http   *http.Client // speaks HTTP/1.1, which a WebSocket needs
	admin  string
	stop   context.CancelFunc
	ended  chan error
	log    controltest.Log
	err    error
}

// shortBody is how long the shared server waits for a body.
const shortBody = 5 * time.Second

func (p *plane) start() error {
	var err error
	if p.dir, err = os.MkdirTemp("", "runapi-"); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	if p.server, err = embedded.Start(context.Background(), embedded.Options{State: p.dir, Log: log}); err != nil {
		return err
	}
	followed := make(chan struct{})
	c, err := control.New(control.Options{
		Config: p.server.Loopback(), State: p.dir, Log: log, Limit: 8, AllowUnsandboxed: true, Version: "test", Collect: true,
		Started: func() { close(followed) },
	})
	if err != nil {
		return err
	}
	p.live = New(Options{
		Client: c.Client(), Reader: c.Reader(), State: p.dir, Log: log, RunID: control.AttemptID, Executes: c.Executes, bodyPatience: shortBody,
		Caller: func(ctx context.Context) Caller {
			id, _ := embedded.IdentityOf(ctx)
			return Caller{Name: id.Name, Runs: id.Runs}
		},
	})
	if err := c.Notify(p.live.Wake); err != nil {
		return err
	}
	p.server.Handle(p.live)
	tls, err := rest.TLSConfigFor(p.server.Loopback())
	if err != nil {
		return err
	}
	tls.NextProtos = []string{"http/1.1"}
	p.http = &http.Client{Transport: &http.Transport{TLSClientConfig: tls}}
	if p.admin, err = p.server.Tokens().Create(context.Background(), embedded.Identity{Name: "the-admin", Role: embedded.RoleAdmin}); err != nil {
		return err
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended = make(chan error, 1)
	go func() { p.ended <- c.Run(ctx) }()
	select {
	case <-followed:
	case <-time.After(patience):
		return fmt.Errorf("the objects are not followed after %s", patience)
	}
	return nil
}

func (p *plane) close() (err error) {
	if p.http != nil {
		p.http.CloseIdleConnections()
	}
	if p.stop != nil {
		p.stop()
		err = <-p.ended
	}
	if p.live != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if closed := p.live.Close(ctx); err == nil {
			err = closed
		}
	}
	if p.server != nil {
		if stopped := p.server.Stop(); err == nil {
			err = stopped
		}
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
	return err
}

func sharedPlane(t testing.TB) *plane {
	t.Helper()
	shared.once.Do(func() { shared.err = shared.start() })
	if shared.err != nil {
		t.Fatalf("start the shared control plane: %v\n%s", shared.err, shared.log.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", shared.log.String())
		}
	})
	return &shared
}

// made counts what tests make: a test that is run again must not meet what it
// left the first time.
var made atomic.Int64

func unique(name string) string { return fmt.Sprintf("%s-%d", name, made.Add(1)) }

// who is the name of the identity of a token.
func (p *plane) who(t testing.TB, token string) string {
	t.Helper()
	a, ok, err := p.server.Tokens().AuthenticateToken(t.Context(), token)
	if err != nil || !ok {
		t.Fatal(err)
	}
	return a.User.GetName()
}

// token makes an identity of a role.
func (p *plane) token(t testing.TB, name string, role embedded.Role, runs ...string) string {
	t.Helper()
	text, err := p.server.Tokens().Create(t.Context(), embedded.Identity{Name: unique(name), Role: role, Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ask makes a request and returns the code and the answer.
func (p *plane) ask(t testing.TB, method, path, token, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.server.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(req)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(text)
}

// make creates an object.
func (p *plane) make(t testing.TB, namespace, plural, object string) {
	t.Helper()
	if code, text := p.ask(t, "POST", apis(namespace)+plural, p.admin, object, nil); code != http.StatusCreated {
		t.Fatalf("%s: %d %s", plural, code, text)
	}
}

func apis(namespace string) string {
	return "/apis/agentctl.dev/v1alpha1/namespaces/" + namespace + "/"
}
