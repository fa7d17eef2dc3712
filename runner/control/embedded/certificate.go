package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentctl.dev/agentctl/runner/statedir"
)

const (
	caName      = "ca"
	servingName = "serving"
	// caLife and servingLife are how long a certificate is valid. A certificate
	// with less than renewBefore left is replaced. The authority is replaced
	// when the server starts, because clients know it from the kubeconfig; the
	// serving certificate also while the server runs.
	caLife      = 10 * 365 * 24 * time.Hour
	servingLife = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
	// maxPEM bounds the file of a key or of a certificate.
	maxPEM = 64 << 10
)

// pair is a certificate with its key.
type pair struct {
	cert            *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// ever is when every certificate begins to be good: on a machine whose clock has
// lost the time, the authority that copies of the kubeconfig know stays.
func ever() time.Time { return time.Unix(0, 0) }

// certificates are the authority of this control plane and what it serves with.
// The authority speaks for this machine only.
type certificates struct {
	dir string
	now func() time.Time
	ca  pair

	mu      sync.Mutex
	serving pair
}

// openCertificates reads the certificates of a folder; those that are missing,
// damaged or about to expire are replaced.
func openCertificates(dir string, clock func() time.Time) (*certificates, error) {
	c, now := &certificates{dir: dir, now: clock}, clock()
	ca, err := readPair(dir, caName)
	if err != nil || !lasting(ca.cert, now) || !ca.cert.IsCA {
		if ca, err = newPair(caTemplate(now), nil); err != nil {
			return nil, err
		}
		if err = ca.write(dir, caName); err != nil {
			return nil, err
		}
	}
	c.ca = ca
	serving, err := readPair(dir, servingName)
	c.serving = serving
	if err != nil || !lasting(serving.cert, now) || serving.cert.CheckSignatureFrom(ca.cert) != nil {
		if err := c.renew(now); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// renew replaces the serving certificate.
func (c *certificates) renew(now time.Time) error {
	serving, err := newPair(servingTemplate(now), &c.ca)
	if err != nil {
		return err
	}
	c.serving = serving
	return serving.write(c.dir, servingName)
}

// present is the certificate for a connection. A server may run for longer than
// a certificate is good, and clocks are set; what it renews it presents, also
// where it cannot be kept.
func (c *certificates) present(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); !lasting(c.serving.cert, now) {
		if err := c.renew(now); err != nil && !lasting(c.serving.cert, now) {
			return nil, err
		}
	}
	return &tls.Certificate{Certificate: [][]byte{c.serving.cert.Raw}, PrivateKey: c.serving.key, Leaf: c.serving.cert}, nil
}

func lasting(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Add(renewBefore).Before(c.NotAfter)
}

func loopbacks() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback} }

func caTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "agentd " + now.UTC().Format(time.DateOnly)},
		NotBefore: ever(), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		// A stolen key of this authority cannot be used for any other name.
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{"localhost"},
		PermittedIPRanges: []*net.IPNet{
			{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
			{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
		},
	}
}

func servingTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "agentd"},
		NotBefore: ever(), NotAfter: now.Add(servingLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              []string{"localhost"},
		IPAddresses:           loopbacks(),
	}
}

// newPair makes a key and its certificate, signed by parent or by itself.
func newPair(template *x509.Certificate, parent *pair) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	signer, issuer := crypto.Signer(key), template
	if parent != nil {
		signer, issuer = parent.key, parent.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode a key: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("read the certificate just made: %w", err)
	}
	return pair{
		cert: cert, key: key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

var errNotPrivate = errors.New("others may read the key")

// readPair reads name.crt and name.key. A key that others could have read is as
// good as none.
func readPair(dir, name string) (pair, error) {
	certPath, keyPath := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	info, err := os.Lstat(keyPath)
	if err != nil {
		return pair{}, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return pair{}, errNotPrivate
	}
	certPEM, err := statedir.ReadFile(certPath, maxPEM)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := statedir.ReadFile(keyPath, maxPEM)
	if err != nil {
		return pair{}, err
	}
	both, err := tls.X509KeyPair(certPEM, keyPEM) // checks that they belong together
	if err != nil {
		return pair{}, err
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return pair{}, fs.ErrInvalid
	}
	return pair{cert: both.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// write keeps a pair; the key first, because a certificate without its key is
// replaced by the next start, as it should be.
func (p pair) write(dir, name string) error {
	if err := writePrivate(filepath.Join(dir, name+".key"), p.keyPEM); err != nil {
		return err
	}
	return writePrivate(filepath.Join(dir, name+".crt"), p.certPEM)
}

// tls is what the server presents: TLS 1.3, HTTP/2 if the client can.
func (c *certificates) tls() *tls.Config {
	return &tls.Config{GetCertificate: c.present, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}}
}
