package embedded

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCertificatesAreRenewedInTime(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	other, err := openCertificates(t.TempDir(), at(begin))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		damage            damage
		after             time.Duration
		newCA, newServing bool
		reason            string
	}{
		"the next day":            {nil, day, false, false, "nothing changes without need"},
		"31 days left":            {nil, servingLife - 31*day, false, false, "there is time"},
		"29 days left":            {nil, servingLife - 29*day, false, true, "a server may run for a month"},
		"long after":              {nil, servingLife + day, false, true, "it has expired"},
		"the authority ends":      {nil, caLife - 29*day, true, true, "what it signed ends with it"},
		"the clock was set back":  {nil, -day, false, false, "what was good then is good now"},
		"the clock lost the time": {nil, -begin.Sub(time.Unix(60, 0)), false, false, "it is found again, and so are the clients"},
		"no serving key":          {remove("serving.key"), day, false, true, "half a pair is none"},
		"no authority":            {remove("ca.crt"), day, true, true, "nobody knows who signed it"},
		"a key that others read":  {func(dir string) error { return os.Chmod(filepath.Join(dir, "ca.key"), 0o644) }, day, true, true, "it may have been copied"},
		"another's certificate":   {func(dir string) error { return other.serving.write(dir, servingName) }, day, false, true, "our authority did not sign it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old, err := openCertificates(dir, at(begin))
			if err != nil {
				t.Fatal(err)
			}
			if c.damage != nil {
				if err := c.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			now := begin.Add(c.after)
			got, err := openCertificates(dir, at(now))
			if err != nil {
				t.Fatal(err)
			}
			if newCA := !bytes.Equal(got.ca.certPEM, old.ca.certPEM); newCA != c.newCA {
				t.Errorf("%s: new authority %v, want %v", c.reason, newCA, c.newCA)
			}
			if newServing := !bytes.Equal(got.serving.certPEM, old.serving.certPEM); newServing != c.newServing {
				t.Errorf("%s: new certificate %v, want %v", c.reason, newServing, c.newServing)
			}
			verify(t, got, now)
			again, err := openCertificates(dir, at(now))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again.serving.certPEM, got.serving.certPEM) {
				t.Error("what was made is not what is read")
			}
		})
	}
}

// verify looks at certificates as clients do.
func verify(t *testing.T, c *certificates, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca.certPEM)
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		if _, err := c.serving.cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

// TestServerOutlivesItsCertificate lets the time go on, and jump, while a server
// runs, and shakes hands with it as a client does that knows the authority.
func TestServerOutlivesItsCertificate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	c, err := openCertificates(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca.certPEM)
	serves := func(reason string) []byte {
		t.Helper()
		near, far := net.Pipe()
		defer near.Close()
		served := make(chan error, 1)
		go func() {
			defer far.Close()
			served <- tls.Server(far, c.tls()).HandshakeContext(t.Context())
		}()
		conn := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", Time: at(now), MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true})
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		_, _ = conn.Read(make([]byte, 1)) // the tickets of the session, until the server goes
		if err := <-served; err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		return conn.ConnectionState().PeerCertificates[0].Raw
	}
	first := serves("at the beginning")
	now = now.Add(servingLife - 31*24*time.Hour)
	if !bytes.Equal(serves("eleven months later"), first) {
		t.Error("it was renewed without need")
	}
	now = now.Add(60 * 24 * time.Hour)
	second := serves("beyond its end")
	if bytes.Equal(second, first) {
		t.Error("it was not renewed")
	}
	if kept, err := readPair(dir, servingName); err != nil || !bytes.Equal(kept.cert.Raw, second) {
		t.Errorf("what it serves with is not what it kept: %v", err)
	}
	now = now.Add(-2 * 365 * 24 * time.Hour)
	if !bytes.Equal(serves("two years back"), second) {
		t.Error("a clock that was set back made it renew")
	}
	now = now.Add(6 * 365 * 24 * time.Hour)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	serves("where it cannot be kept")
}

func TestAuthorityIsOfNoUseElsewhere(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c, err := openCertificates(t.TempDir(), at(now))
	if err != nil {
		t.Fatal(err)
	}
	forged := servingTemplate(now)
	forged.DNSNames, forged.IPAddresses = []string{"bank.example"}, nil
	p, err := newPair(forged, &c.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.cert)
	if _, err := p.cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "bank.example", CurrentTime: now}); err == nil {
		t.Error("a certificate for another name was accepted")
	}
}

func TestKeysAreReadByTheirOwnerOnly(t *testing.T) {
	s := sharedServer(t)
	for _, name := range []string{"ca.key", "serving.key", tokensFile, kubeconfigFile, lockFile, portFile, auditFile} {
		info, err := os.Stat(s.folder.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}
