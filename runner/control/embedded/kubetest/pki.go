package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	caFile         = "ca.crt"
	servingFile    = "serving.crt"
	servingKeyFile = "serving.key"
	valid          = 24 * time.Hour
)

// pki has the certificates of a cluster that runs as long as a test.
type pki struct {
	ca       *x509.Certificate
	caKey    *ecdsa.PrivateKey
	caPEM    []byte
	admin    []byte
	adminKey []byte
}

// newPKI makes the certificates and writes what the server reads into a folder.
func newPKI(dir string) (*pki, error) {
	p := &pki{}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "kubetest"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	p.ca, p.caKey = ca, key
	if p.caPEM, err = p.sign(ca, &key.PublicKey); err != nil {
		return nil, err
	}
	serving, servingKey, err := p.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	})
	if err != nil {
		return nil, err
	}
	if p.admin, p.adminKey, err = p.user("admin", "system:masters"); err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{caFile: p.caPEM, servingFile: serving, servingKeyFile: servingKey} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// user makes a client certificate for a user.
func (p *pki) user(name string, groups ...string) (cert, key []byte, err error) {
	return p.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (p *pki) issue(c *x509.Certificate) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	cert, err = p.sign(c, &k.PublicKey)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func (p *pki) sign(c *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now() //nolint:forbidigo // a certificate is valid in real time
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, now.Add(-time.Minute), now.Add(valid)
	der, err := x509.CreateCertificate(rand.Reader, c, p.ca, key, p.caKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", c.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// writeKubeconfig writes a kubeconfig for the admin.
func (p *pki) writeKubeconfig(path, url string) error {
	const name = "cluster"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: url, CertificateAuthorityData: p.caPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: p.admin, ClientKeyData: p.adminKey}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
