package client

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"time"
	"unicode"

	"k8s.io/client-go/pkg/apis/clientauthentication"
	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/transport"
)

// loginTime bounds a request together with the program that prints its
// credentials, which may ask a person.
const loginTime = 5 * time.Minute

// login sends requests with the credentials that a program of the kubeconfig
// prints. client-go runs it, keeps what it printed until that expires or is
// refused, and closes the connections of a certificate that was replaced.
type login struct {
	endpoint  Endpoint
	transport *http.Transport
	next      http.RoundTripper
}

// newLogin returns a login that sends by t.
func newLogin(e Endpoint, t *http.Transport) (*login, error) {
	cluster := &clientauthentication.Cluster{Server: e.Server, TLSServerName: e.ServerName, CertificateAuthorityData: e.CA, Config: e.Exec.Config}
	if e.Proxy != nil {
		cluster.ProxyURL = e.Proxy.String()
	}
	a, err := exec.GetAuthenticator(e.Exec, cluster)
	if err != nil {
		return nil, fail(err, "context %q: exec", e.Context)
	}
	c := transport.Config{DialHolder: &transport.DialHolder{Dial: t.DialContext}}
	if err := a.UpdateTransportConfig(&c); err != nil {
		return nil, fail(err, "context %q: exec", e.Context)
	}
	t.DialContext = c.DialHolder.Dial
	t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := c.TLS.GetCertHolder.GetCert()
		if cert == nil && err == nil {
			cert = &tls.Certificate{} // it printed a token
		}
		return cert, err
	}
	return &login{endpoint: e, transport: t, next: c.WrapTransport(t)}, nil
}

// CloseIdleConnections implements what http.Client.CloseIdleConnections asks for.
func (l *login) CloseIdleConnections() { l.transport.CloseIdleConnections() }

// RoundTrip sends a request. client-go runs the program without a context: a
// request ends with its own context all the same, and what comes later is closed.
func (l *login) RoundTrip(r *http.Request) (*http.Response, error) {
	type outcome struct {
		answer *http.Response
		err    error
	}
	outcomes, left := make(chan outcome), make(chan struct{})
	defer close(left)
	go func() {
		answer, err := l.next.RoundTrip(r)
		select {
		case outcomes <- outcome{answer, err}:
		case <-left:
			if err == nil {
				_ = answer.Body.Close() // it is not read
			}
		}
	}()
	late := time.NewTimer(loginTime)
	defer late.Stop()
	select {
	case o := <-outcomes:
		return o.answer, l.explain(o.err)
	case <-late.C:
		return nil, l.fail("it has not ended within " + loginTime.String())
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// explain returns the error of the program in the words of this client.
// client-go has no type for it, and repeats the output of the program, which
// may be a token.
func (l *login) explain(err error) error {
	if err == nil {
		return nil
	}
	words, ok := strings.CutPrefix(err.Error(), "getting credentials: ")
	if !ok {
		return err
	}
	// Without a kind or with none at all, it is decoded into the internal version.
	if strings.HasPrefix(words, "decoding stdout") || strings.Contains(words, "__internal") {
		words = "it printed something that is not an ExecCredential of " + l.endpoint.Exec.APIVersion
	}
	words, _, _ = strings.Cut(strings.TrimPrefix(words, "exec: "), "\n")
	return l.fail(words)
}

func (l *login) fail(words string) error {
	e := fail(nil, "context %q: the program %q prints no credentials: %s", l.endpoint.Context, l.endpoint.Exec.Command, words)
	hint := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return -1
	}, l.endpoint.Exec.InstallHint)
	if hint == "" {
		return e.hint("run it by hand to see why; the user of the context names it: agentctl config view")
	}
	return e.hint("%s", hint)
}
