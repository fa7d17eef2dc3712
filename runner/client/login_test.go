package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"
)

const execVersion = "client.authentication.k8s.io/v1"

// printer is a program that prints credentials: a script, which leaves a line in
// the file runs each time.
func printer(t *testing.T, script string) (program *api.ExecConfig, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	path := write(t, dir, "login.sh", "echo >> "+dir+"/runs\ncd "+dir+"\n"+script+"\n")
	return &api.ExecConfig{APIVersion: execVersion, Command: "sh", Args: []string{path}, InteractiveMode: api.NeverExecInteractiveMode}, func() int {
		b, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
}

// credential prints an ExecCredential with these fields of its status.
func credential(status string) string {
	return "cat <<'END'\n" + `{"apiVersion":"` + execVersion + `","kind":"ExecCredential","status":{` + status + "}}\nEND"
}

// loggedIn is a client of a server whose credentials a program prints.
func loggedIn(t *testing.T, program *api.ExecConfig, config *tls.Config, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	c, err := New(Endpoint{Context: "test", Server: s.URL, CA: certPEM(s), Exec: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAProgramPrintsTheToken(t *testing.T) {
	for name, x := range map[string]struct {
		reason, status string
		runs           int
	}{
		"lasting": {"one run serves all requests", `"token":"t1"`, 1},
		"future":  {"until it expires", `"token":"t1","expirationTimestamp":"2999-01-01T00:00:00Z"`, 1},
		"expired": {"a token that has expired is fetched again", `"token":"t1","expirationTimestamp":"2001-01-01T00:00:00Z"`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			program, runs := printer(t, credential(x.status))
			c := loggedIn(t, program, nil, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != "Bearer t1" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			for range 3 {
				if err := c.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if runs() != x.runs {
				t.Errorf("%s: it ran %d times, want %d", x.reason, runs(), x.runs)
			}
		})
	}
}

// A token may be refused before it expires: the program runs again for the next
// request.
func TestARefusedTokenIsFetchedAgain(t *testing.T) {
	program, runs := printer(t, `sed "s/TOKEN/t$(wc -l < runs | tr -d ' ')/" <<'END'
{"apiVersion":"`+execVersion+`","kind":"ExecCredential","status":{"token":"TOKEN"}}
END`)
	c := loggedIn(t, program, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t2" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "does not know this token") {
		t.Errorf("the first request: %v", err)
	}
	if err := c.Ready(t.Context()); err != nil || runs() != 2 {
		t.Errorf("the second request: %v after %d runs", err, runs())
	}
}

func TestAProgramPrintsTheCertificate(t *testing.T) {
	cert, key := pair(t)
	program, runs := printer(t, credential(fmt.Sprintf(`"clientCertificateData":%q,"clientKeyData":%q`, cert, key)))
	subject := ""
	c := loggedIn(t, program, &tls.Config{ClientAuth: tls.RequireAnyClientCert}, func(_ http.ResponseWriter, r *http.Request) {
		subject = r.TLS.PeerCertificates[0].Subject.CommonName
	})
	if err := c.Ready(t.Context()); err != nil || subject != "x" || runs() != 1 {
		t.Errorf("%v: the certificate is of %q, after %d runs", err, subject, runs())
	}
}

// A server may ask for a certificate and do without one.
func TestATokenDoesForAServerThatAsksForACertificate(t *testing.T) {
	program, _ := printer(t, credential(`"token":"t1"`))
	c := loggedIn(t, program, &tls.Config{ClientAuth: tls.RequestClientCert}, func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 || r.Header.Get("Authorization") != "Bearer t1" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatPrintsNoCredentials(t *testing.T) {
	for name, x := range map[string]struct{ script, want string }{
		"fails":           {"exit 3", "exit code 3"},
		"prints nothing":  {"", "not an ExecCredential"},
		"prints a token":  {"echo hunter2", "not an ExecCredential"},
		"no kind":         {`echo '{"status":{"token":"hunter2"}}'`, "not an ExecCredential"},
		"another version": {`echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"hunter2"}}'`, "v1beta1"},
		"no status":       {`echo '{"apiVersion":"` + execVersion + `","kind":"ExecCredential"}'`, "status"},
		"nothing in it":   {credential(""), "token or cert/key"},
		"half a pair":     {credential(`"clientCertificateData":"hunter2"`), "not both"},
		"no certificate":  {credential(`"clientCertificateData":"hunter2","clientKeyData":"hunter2"`), "client key/certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			program, _ := printer(t, x.script)
			program.InstallHint = "install\x1b[31m it"
			c := loggedIn(t, program, nil, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
			err := c.Ready(t.Context())
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), `the program "sh" prints no credentials`) {
				t.Errorf("got %v, want %q in it", err, x.want)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("a value is reported: %v", err)
			}
			if Hint(err) != "install[31m it" {
				t.Errorf("the hint is %q", Hint(err))
			}
		})
	}
	c := loggedIn(t, &api.ExecConfig{APIVersion: execVersion, Command: "no-such-login", InteractiveMode: api.NeverExecInteractiveMode}, nil, nil)
	if err := c.Ready(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "executable no-such-login not found") || !strings.Contains(Hint(err), "config view") {
		t.Errorf("a program that is not there: %v, hint %q", err, Hint(err))
	}
}

// client-go waits for the program without a context.
func TestARequestDoesNotWaitForItsProgram(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no FIFO here:", err)
	}
	program, _ := printer(t, "read line < "+fifo)
	c := loggedIn(t, program, nil, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := errors.New("asked to end")
	failed := make(chan error, 1)
	go func() { failed <- c.Ready(ctx) }()
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // once the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // which ends the program
	cancel(asked)
	if err := <-failed; !errors.Is(err, asked) {
		t.Errorf("got %v", err)
	}
}

// The program is named and configured by the kubeconfig: a relative path starts
// from its folder, and the extension of the cluster is handed over.
func TestTheKubeconfigNamesTheProgram(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer for-me" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), certPEM(server), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "login")); err != nil {
		t.Fatal(err)
	}
	program := write(t, dir, "login.sh", `case $KUBERNETES_EXEC_INFO in
*'"server":"`+server.URL+`"'*'"audience":"here"'*) ;;
*) exit 4 ;;
esac
`+strings.ReplaceAll(credential(`"token":"$FOR"`), "'END'", "END"))
	file := write(t, dir, "config", `
current-context: c
clusters:
- name: k
  cluster:
    server: `+server.URL+`
    certificate-authority: ca.pem
    extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: here}}]
users:
- name: u
  user:
    exec:
      apiVersion: `+execVersion+`
      command: ./login
      args: [`+program+`]
      env: [{name: FOR, value: for-me}]
      interactiveMode: Never
      provideClusterInfo: true
contexts: [{name: c, context: {cluster: k, user: u}}]
`)
	config, err := LoadConfig(t.TempDir(), "", environment("KUBECONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Credentials that the kubeconfig holds come before a program, as with kubectl.
func TestATokenComesBeforeAProgram(t *testing.T) {
	file := write(t, t.TempDir(), "config", `{"current-context": "c", "clusters": [{"name": "k", "cluster": {"server": "https://h"}}],
"users": [{"name": "u", "user": {"token": "t", "exec": {"apiVersion": "`+execVersion+`", "command": "login", "interactiveMode": "Never"}}}],
"contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}`)
	config, err := LoadConfig(t.TempDir(), "", environment("KUBECONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := config.Endpoint("c"); err != nil || e.Token != "t" || e.Exec != nil {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestTheProxyOfAClusterIsUsed(t *testing.T) {
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	file := write(t, t.TempDir(), "config", `{"current-context": "c", "clusters": [{"name": "k", "cluster": {"server": "https://h:6443", "proxy-url": "`+proxy.URL+`"}}],
"contexts": [{"name": "c", "context": {"cluster": "k"}}]}`)
	config, err := LoadConfig(t.TempDir(), "", environment("KUBECONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Connect(t.Context(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(t.Context()); err == nil || asked != "CONNECT h:6443" {
		t.Errorf("the proxy was asked for %q: %v", asked, err)
	}
}
