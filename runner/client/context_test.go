package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// pair makes a certificate and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{}, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

const kubeconfigText = `apiVersion: v1
kind: Config
# people write comments
current-context: prod
preferences: {colors: true}
clusters:
- {name: prod, cluster: {server: "https://prod:6443", certificate-authority: ca.pem, tls-server-name: api}}
- {name: lab, cluster: {server: "https://lab:6443"}}
users:
- {name: jane, user: {tokenFile: token}}
- {name: robot, user: {token: t0}}
contexts:
- {name: prod, context: {cluster: prod, user: jane, namespace: team}}
- {name: lab, context: {cluster: lab, user: robot}}
`

func TestContextIsChosenByFlagThenEnvironmentThenFile(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "config", kubeconfigText)
	for name, x := range map[string]struct {
		reason, flag string
		env          []string
		want, origin string
	}{
		"nothing":    {reason: "the local one", want: "local", origin: "default"},
		"kubectl's":  {reason: "KUBECONFIG counts", env: []string{"KUBECONFIG", file}, want: "prod", origin: file},
		"ours first": {reason: "AGENTCTL_KUBECONFIG comes before", env: []string{"KUBECONFIG", file, "AGENTCTL_KUBECONFIG", filepath.Join(dir, "none")}, want: "local", origin: "default"},
		"variable":   {reason: "AGENTCTL_CONTEXT comes before the file", env: []string{"KUBECONFIG", file, "AGENTCTL_CONTEXT", "lab"}, want: "lab", origin: "AGENTCTL_CONTEXT"},
		"flag":       {reason: "the flag comes first", flag: "local", env: []string{"KUBECONFIG", file, "AGENTCTL_CONTEXT", "lab"}, want: "local", origin: "--context"},
		"a list":     {reason: "what is not there is left out", env: []string{"KUBECONFIG", filepath.Join(dir, "none") + ":" + file}, want: "prod", origin: file},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := LoadConfig("/state", x.flag, environment(x.env...))
			if err != nil {
				t.Fatal(err)
			}
			if c.Current() != x.want || c.Origin != x.origin {
				t.Errorf("%s: got %s from %s, want %s from %s", x.reason, c.Current(), c.Origin, x.want, x.origin)
			}
		})
	}
}

func TestEndpointIsWhatTheFileSays(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "config", kubeconfigText)
	write(t, dir, "ca.pem", "the authority")
	write(t, dir, "token", "first\n")
	c, err := LoadConfig("/state", "", environment("KUBECONFIG", file))
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Endpoint("prod")
	if err != nil {
		t.Fatal(err)
	}
	want := &Endpoint{Context: "prod", Server: "https://prod:6443", ServerName: "api", CA: []byte("the authority"), TokenFile: filepath.Join(dir, "token"), Namespace: "team"}
	if d := cmp.Diff(want, e); d != "" {
		t.Error(d)
	}
	for _, token := range []string{"first", "second"} { // it is rotated while we run
		write(t, dir, "token", token+"\n")
		if got, err := e.token(); got != token || err != nil {
			t.Errorf("token %q, %v", got, err)
		}
	}
	_, err = c.Endpoint("lap")
	if err == nil || !strings.Contains(Hint(err), `"lab"`) {
		t.Errorf("got %v, hint %q", err, Hint(err))
	}
}

func TestUnreadKubeconfigsAreRefused(t *testing.T) {
	cert, key := pair(t)
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	config := func(cluster, user string) string {
		return "current-context: c\nclusters: [{name: k, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
	}
	const server = `server: "https://h:1"`
	for name, x := range map[string]struct{ text, want string }{
		"fine":                 {config(server, "client-certificate-data: "+b64(cert)+", client-key-data: "+b64(key)), ""},
		"exec":                 {config(server, "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}"), ""},
		"exec without version": {config(server, "exec: {command: aws, interactiveMode: Never}"), "apiVersion must be specified"},
		"exec without a mode":  {config(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}"), "interactiveMode must be specified"},
		"exec of a version":    {config(server, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}"), "v1alpha1"},
		"exec without program": {config(server, "exec: {apiVersion: client.authentication.k8s.io/v1beta1}"), "command must be specified"},
		"auth-provider":        {config(server, "auth-provider: {name: gcp}"), "has auth-provider"},
		"password":             {config(server, "username: x, password: hunter2"), "has username"},
		"impersonation":        {config(server, "token: t, as: root"), "has as"},
		"insecure":             {config(server+", insecure-skip-tls-verify: true", "token: t"), "insecure-skip-tls-verify"},
		"groups":               {config(server, "token: t, as-groups: [admins]"), "has as"},
		"proxy":                {config(server+", proxy-url: http://p", "token: t"), ""},
		"proxy of a kind":      {config(server+", proxy-url: 'ftp://x:hunter2@p'", "token: t"), "proxy-url"},
		"two of a name":        {"users: [{name: u, user: {token: hunter2}}, {name: u, user: {token: hunter2}}]", "the same name"},
		"another version":      {"apiVersion: v2\nkind: Config\nusers: [{name: u, user: {token: hunter2}}]", "apiVersion v1"},
		"no server":            {config("", "token: t"), "names no server"},
		"no base64":            {config(server+", certificate-authority-data: '%%'", "token: t"), "no base64"},
		"no CA file":           {config(server+", certificate-authority: none", "token: t"), "no such file"},
		"key does not fit":     {config(server, "client-certificate-data: "+b64(cert)+", client-key-data: "+b64("x")), "do not fit"},
		"certificate without":  {config(server, "client-certificate-data: "+b64(cert)), "do not fit"},
		"no cluster":           {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]", "which is not there"},
		"no user":              {"current-context: c\nclusters: [{name: k, cluster: {server: 'https://h'}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]", "who is not there"},
		"no context":           {"current-context: x", "there is no context"},
		"wrong type":           {"clusters: {a: hunter2}", "wrong type"},
		"no YAML":              {"a: [hunter2\nb", "YAML"},
		"binary":               {"\x00\x01hunter2", "YAML"},
		"larger than allowed":  {"# " + strings.Repeat("x", maxConfig+1), "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, t.TempDir(), "config", x.text)
			c, err := LoadConfig("/state", "", environment("KUBECONFIG", file))
			if err == nil {
				var e *Endpoint
				if e, err = c.Endpoint(c.Current()); err == nil {
					_, err = New(*e)
				}
			}
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("got %v, want %q in it", err, x.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a value is told: %v", err)
			}
		})
	}
	if _, err := LoadConfig("/state", "", environment("KUBECONFIG", t.TempDir())); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestUseChangesOneLine(t *testing.T) {
	file := write(t, t.TempDir(), "config", kubeconfigText)
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	load := func() *Config {
		c, err := LoadConfig("/state", "", environment("KUBECONFIG", link))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := load().Use("lab"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(kubeconfigText, "current-context: prod", `current-context: "lab"`, 1); string(got) != want {
		t.Error(cmp.Diff(want, string(got)))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link became a file")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if c := load(); c.Current() != "lab" {
		t.Errorf("the current one is %s", c.Current())
	}
	for _, name := range []string{"none", "local"} {
		if _, err := load().Use(name); err == nil {
			t.Errorf("%s became the current one", name)
		}
	}
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfigText))
	f.Add([]byte("contexts: [{}]\ncurrent-context: ''\nclusters: null"))
	f.Add([]byte("{"))
	f.Add([]byte(`{"contexts": [{"name": "x"}], "current-context": "y"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseConfig("/nowhere/config", text)
		if err != nil {
			return
		}
		if changed := withCurrent(string(text), "x"); differsOnlyInCurrent(text, changed, "x") {
			if again, err := parseConfig("/nowhere/config", changed); err != nil || again.CurrentContext != "x" {
				t.Errorf("after the change the current context is %v (%v), want x", again, err)
			} else if again.CurrentContext = k.CurrentContext; !reflect.DeepEqual(k, again) {
				t.Errorf("the change of the current context changed more: %+v, was %+v", again, k)
			}
		}
		c := &Config{files: []*kubeconfig{k}}
		c.choose("", "")
		for _, x := range c.Contexts() {
			e, err := c.Endpoint(x.Name)
			if x.Name == LocalContext && x.File == "" {
				if err == nil {
					t.Errorf("the local context leads to %+v, which a file has chosen", e)
				}
				continue
			}
			if err == nil && e.Server != x.Server {
				t.Errorf("the context %q leads to %q and is listed with %q", x.Name, e.Server, x.Server)
			}
			if err == nil && e.Context != x.Name {
				t.Errorf("the context %q leads to an endpoint of %q", x.Name, e.Context)
			}
			if err != nil {
				continue
			}
			if cl, err := New(*e); err == nil {
				cl.Close()
			}
		}
	})
}

// A kubeconfig in flow style has no line for the current context: it is left
// as it was, and the error names the way.
func TestAKubeconfigInFlowStyleIsLeftAsItIs(t *testing.T) {
	text := `{"contexts": [{"name": "x"}, {"name": "y"}], "current-context": "y"}`
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(t.TempDir(), "", func(name string) string { return map[string]string{"KUBECONFIG": file}[name] })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Use("x"); err == nil || !strings.Contains(Hint(err), "kubectl config use-context x") {
		t.Errorf("error %v, hint %q", err, Hint(err))
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("the file became %s (%v)", got, err)
	}
}

func FuzzStatus(f *testing.F) {
	f.Add(409, []byte(`{"kind":"Status","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"k\"","field":".a"}]}}`))
	f.Add(404, []byte(`{"kind":"Status","details":null}`))
	f.Add(200, []byte(`<`))
	c, err := New(Endpoint{Context: "x", Server: "https://h"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		err := c.status(request{about: agentRef}, answer(code, ""), body)
		if err.Error() == "" {
			t.Error("an error without words")
		}
		_ = Hint(err)
		_, _ = decodeObject(body)
	})
}
