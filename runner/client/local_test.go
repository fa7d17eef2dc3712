package client

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/goleak"

	"agentctl.dev/agentctl/runner/statedir"
)

// TestMain is also the program agentd of these tests: a file in its state
// folder sets its behaviour.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == program {
		os.Exit(standIn(os.Args[3]))
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		_ = os.Unsetenv(name) // a proxy would answer for an unreachable server
	}
	goleak.VerifyTestMain(m)
}

// standIn does what a client sees of a control plane: a lock, a kubeconfig, and a
// server that is ready.
func standIn(state string) int {
	folder := filepath.Join(state, "control")
	how, _ := os.ReadFile(filepath.Join(state, "how"))
	if string(how) == "dies" {
		fmt.Fprintln(os.Stderr, "error: the disk is full")
		return 1
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	if ok, err := lock.TryLock(); !ok || err != nil {
		fmt.Fprintln(os.Stderr, "error: somebody else runs it")
		return 1
	}
	_ = os.WriteFile(filepath.Join(folder, "lock"), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
	_ = os.WriteFile(filepath.Join(folder, "environment"), []byte(strings.Join(os.Environ(), "\n")), 0o600)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			_, _ = fmt.Fprint(w, agentJSON)
		}
	}))
	s.StartTLS()
	defer s.Close()
	config := fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: x, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n",
		s.URL, base64.StdEncoding.EncodeToString(certPEM(s)))
	temp := filepath.Join(folder, "kubeconfig.new")
	_ = os.WriteFile(temp, []byte(config), 0o600)
	_ = os.Rename(temp, filepath.Join(folder, "kubeconfig"))
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	select {
	case <-end:
	case <-time.After(10 * time.Minute): // a test that was killed leaves nothing behind
	}
	return 0
}

// planes makes the stand-in the program that is found, and a state folder whose
// control plane ends with the test.
func planes(t *testing.T) (config *Config, state string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	libexec := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(libexec, program)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTCTL_LIBEXEC", libexec)
	state = t.TempDir()
	t.Cleanup(func() { stopAll(t, state) })
	config, err = LoadConfig(state, "", environment())
	if err != nil {
		t.Fatal(err)
	}
	return config, state
}

// stopAll ends every stand-in that was started: of several that start at once one
// serves, and the others may see that later than the client is served, or after
// the first has ended.
func stopAll(t *testing.T, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		stopPlane(t, state)
		switch n, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.ECHILD):
			return
		case n == 0 && sleep(ctx, time.Millisecond) != nil:
			t.Error("a control plane does not end")
			return
		}
	}
}

func stopPlane(t *testing.T, state string) {
	t.Helper()
	var pid int
	b, _ := os.ReadFile(filepath.Join(state, "control", "lock"))
	if n, _ := fmt.Sscan(string(b), &pid); n != 1 || pid < 2 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	lock := flock.New(filepath.Join(state, "control", "lock"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, time.Millisecond); !ok {
		t.Errorf("the control plane does not end: %v", err)
	}
	_ = lock.Unlock()
	_ = os.Truncate(filepath.Join(state, "control", "lock"), 0)
}

func TestControlPlaneIsStartedOnceAndFoundAgain(t *testing.T) {
	config, state := planes(t)
	t.Setenv("A_SECRET", "hunter2")
	if _, err := config.Connect(t.Context(), ConnectOptions{OnlyRunning: true}); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("nothing runs: %v", err)
	}
	var mu sync.Mutex
	var notices []string
	connect := func() {
		c, err := config.Connect(t.Context(), ConnectOptions{Notice: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, text)
		}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if e := c.Endpoint(); e.Context != LocalContext || !e.Local {
			t.Errorf("it is %+v", e)
		}
		if _, err := c.Get(t.Context(), agentRef); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(connect)
	}
	all.Wait()
	if want := "starting the control plane in " + state + " (first start)"; len(notices) == 0 || notices[0] != want {
		t.Errorf("told %q, want %q", notices, want)
	}
	before := len(notices)
	connect()
	if len(notices) != before {
		t.Error("one that runs was started")
	}
	env, err := os.ReadFile(filepath.Join(state, "control", "environment"))
	if err != nil || strings.Contains(string(env), "hunter2") || !strings.Contains(string(env), "PATH=") {
		t.Errorf("it got %s, %v", env, err)
	}
	if info, err := os.Stat(filepath.Join(state, "control")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
}

func TestOneThatWentAwayIsStartedAgain(t *testing.T) {
	config, state := planes(t)
	for range 2 {
		c, err := config.Connect(t.Context(), ConnectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		stopPlane(t, state)
	}
}

// TestOneThatIsGoingIsWaitedFor: between its last answer and the end of its
// process it holds the folder, and does not answer.
func TestOneThatIsGoingIsWaitedFor(t *testing.T) {
	config, state := planes(t)
	c, err := config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	stopPlane(t, state)
	held := flock.New(filepath.Join(state, "control", "lock"))
	if ok, err := held.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := config.Connect(t.Context(), ConnectOptions{OnlyRunning: true}); err == nil || errors.Is(err, ErrNotRunning) {
		t.Errorf("a look does not wait: %v", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = held.Unlock() })
	c, err = config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestStrangerOnItsPortIsToldNothing has somebody else listen where the
// kubeconfig of a control plane that has ended points to.
func TestStrangerOnItsPortIsToldNothing(t *testing.T) {
	config, state := planes(t)
	c, err := config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(c.Endpoint().Server, "https://")
	c.Close()
	stopPlane(t, state)
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked with %q", r.Header.Get("Authorization"))
	}))
	if stranger.Listener, err = net.Listen("tcp", address); err != nil {
		t.Skip("the port is in use again:", err)
	}
	stranger.TLS = &tls.Config{Certificates: []tls.Certificate{otherCertificate(t)}, MinVersion: tls.VersionTLS12}
	stranger.StartTLS()
	defer stranger.Close()
	c, err = config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Endpoint().Server == "https://"+address {
		t.Error("the stranger is taken for the control plane")
	}
}

func otherCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	cert, key := pair(t)
	c, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStartThatFailsTellsWhy(t *testing.T) {
	config, state := planes(t)
	if err := os.WriteFile(filepath.Join(state, "how"), []byte("dies"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Connect(t.Context(), ConnectOptions{})
	if err == nil || !strings.Contains(err.Error(), "ended at once: the disk is full") || !strings.Contains(Hint(err), "agentd.log") {
		t.Errorf("got %v, hint %q", err, Hint(err))
	}
	t.Setenv("AGENTCTL_LIBEXEC", t.TempDir())
	_, err = config.Connect(t.Context(), ConnectOptions{})
	if err == nil || !strings.Contains(err.Error(), "agentd is not in") || !strings.Contains(Hint(err), "make build") {
		t.Errorf("got %v, hint %q", err, Hint(err))
	}
}

func TestLogThatIsNoFileIsNotWaitedFor(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	for name, put := range map[string]func(string) error{
		"a FIFO": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link": func(path string) error { return os.Symlink(victim, path) },
	} {
		l := local{state: t.TempDir()}
		l.folder = l.state
		if err := put(l.path(program + ".log")); err != nil {
			t.Fatal(err)
		}
		if f, err := l.log(); !errors.Is(err, statedir.ErrNotRegular) {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
		if got := l.lastWords(); got != "it left no log" {
			t.Errorf("%s: last words %q", name, got)
		}
	}
	if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where the link leads to there is now: %v", err)
	}
}

func TestBrokenKubeconfigOfAHeldFolderIsAnError(t *testing.T) {
	config, state := planes(t)
	c, err := config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := os.WriteFile(filepath.Join(state, "control", "kubeconfig"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Connect(t.Context(), ConnectOptions{}); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("got %v", err)
	}
}

func TestRemoteContextStartsNothing(t *testing.T) {
	_, state := planes(t)
	file := write(t, t.TempDir(), "config", kubeconfigText)
	config, err := LoadConfig(state, "lab", environment("KUBECONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Connect(t.Context(), ConnectOptions{Notice: func(text string) { t.Error(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Endpoint().Server != "https://lab:6443" || config.Local() {
		t.Errorf("it is %+v", c.Endpoint())
	}
}
