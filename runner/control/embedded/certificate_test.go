package embedded

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCertificatesAreRenewedInTime(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	other, err := openCertificates(t.TempDir(), begin)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		damage            damage
		after             time.Duration
		newCA, newServing bool
		reason            string
	}{
		"the next day":           {nil, day, false, false, "nothing changes without need"},
		"31 days left":           {nil, servingLife - 31*day, false, false, "there is time"},
		"29 days left":           {nil, servingLife - 29*day, false, true, "a server may run for a month"},
		"long after":             {nil, servingLife + day, false, true, "it has expired"},
		"the authority ends":     {nil, caLife - 29*day, true, true, "what it signed ends with it"},
		"the clock was set back": {nil, -day, true, true, "a certificate of the future is refused by clients"},
		"no serving key":         {remove("serving.key"), day, false, true, "half a pair is none"},
		"no authority":           {remove("ca.crt"), day, true, true, "nobody knows who signed it"},
		"a key that others read": {func(dir string) error { return os.Chmod(filepath.Join(dir, "ca.key"), 0o644) }, day, true, true, "it may have been copied"},
		"another's certificate":  {func(dir string) error { return other.serving.write(dir, servingName) }, day, false, true, "our authority did not sign it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old, err := openCertificates(dir, begin)
			if err != nil {
				t.Fatal(err)
			}
			if c.damage != nil {
				if err := c.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			now := begin.Add(c.after)
			got, err := openCertificates(dir, now)
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
			again, err := openCertificates(dir, now)
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
	if _, err := c.tls(); err != nil {
		t.Error(err)
	}
}

func TestAuthorityIsOfNoUseElsewhere(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c, err := openCertificates(t.TempDir(), now)
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
