package client

import (
	"crypto/tls"
	"errors"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// maxConfig bounds a kubeconfig and what it names.
const maxConfig = 1 << 20

// execExtension is the extension of a cluster that is meant for the program
// which prints the credentials.
const execExtension = "client.authentication.k8s.io/exec"

// kubeconfig is a kubeconfig file.
type kubeconfig struct {
	path string
	*api.Config
}

// readConfig reads a kubeconfig file.
func readConfig(path string) (*kubeconfig, error) {
	text, err := readSmall(path)
	if err != nil {
		return nil, fail(err, "read the kubeconfig")
	}
	return parseConfig(path, text)
}

// parseConfig parses a kubeconfig. Relative paths in it start from its folder.
func parseConfig(path string, text []byte) (*kubeconfig, error) {
	c, err := clientcmd.Load(text)
	if err == nil {
		for _, x := range c.Clusters {
			x.LocationOfOrigin = path
		}
		for _, x := range c.AuthInfos {
			x.LocationOfOrigin = path
		}
		for _, x := range c.Contexts {
			x.LocationOfOrigin = path
		}
		err = clientcmd.ResolveLocalPaths(c)
	}
	if err != nil {
		return nil, fail(nil, "kubeconfig %s: %s", path, plain(err)).
			hint("repair it, or name another by AGENTCTL_KUBECONFIG; runs of the state folder need none")
	}
	return &kubeconfig{path: path, Config: c}, nil
}

// plain leaves the values out of an error: they may be secrets. clientcmd
// repeats a whole list of users.
func plain(err error) string {
	text := err.Error()
	if strings.Contains(text, "cannot unmarshal") {
		_, field, _ := strings.Cut(text, "Go struct field ")
		field, _, _ = strings.Cut(field, " of type")
		_, field, _ = strings.Cut(field, ".")
		return "the field " + field + " has the wrong type"
	}
	for _, known := range [][2]string{
		{"illegal base64", "a field that ends in -data is no base64"},
		{"duplicate name", "two entries of a list have the same name"},
		{"is registered", "it is not a Config of apiVersion v1"},
	} {
		if strings.Contains(text, known[0]) {
			return known[1]
		}
	}
	if _, rest, ok := strings.Cut(text, "yaml: line "); ok {
		line, _, _ := strings.Cut(rest, ":")
		return "line " + line + " is no YAML"
	}
	return "it is no YAML"
}

// readSmall reads a regular file of bounded size. Opening a FIFO would wait for
// a writer.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(b) > maxConfig {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("it is larger than 1 MiB")}
	}
	return b, err
}

// data returns the PEM text of a field, or of the file that it names. clientcmd
// would read the file without a bound, and wait for the writer of a FIFO.
func data(origin, what string, inline []byte, file string) ([]byte, error) {
	if len(inline) > 0 || file == "" {
		return inline, nil
	}
	b, err := readSmall(file)
	if err != nil {
		return nil, fail(err, "kubeconfig %s: %s", origin, what)
	}
	return b, nil
}

// setCluster takes the server from a cluster.
func (e *Endpoint) setCluster(name string, c *api.Cluster) error {
	origin := c.LocationOfOrigin
	switch {
	case c.Server == "":
		return fail(nil, "kubeconfig %s: cluster %q names no server", origin, name)
	case c.InsecureSkipTLSVerify:
		return fail(nil, "kubeconfig %s: cluster %q has insecure-skip-tls-verify: anybody could be it, and be given the token", origin, name).
			hint("write the certificate-authority-data of the server instead")
	}
	if c.ProxyURL != "" {
		u, err := url.Parse(c.ProxyURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) { // not repeated: it may hold a password
			return fail(nil, "kubeconfig %s: cluster %q: proxy-url is not an http, https or socks5 address", origin, name)
		}
		e.Proxy = u
	}
	ca, err := data(origin, "certificate-authority", c.CertificateAuthorityData, c.CertificateAuthority)
	if err != nil {
		return err
	}
	e.Server, e.ServerName, e.CA = c.Server, c.TLSServerName, ca
	return nil
}

// setUser takes the credentials, or the program that prints them, from a user.
func (e *Endpoint) setUser(name string, u *api.AuthInfo, c *api.Cluster) error {
	origin := u.LocationOfOrigin
	refuse := func(field string) error {
		return fail(nil, "kubeconfig %s: user %q has %s, which is not supported", origin, name, field).
			hint("use a token, a tokenFile, a client certificate or exec: for example kubectl create token, or agentd token create")
	}
	switch {
	case u.AuthProvider != nil:
		return refuse("auth-provider")
	case u.Username != "":
		return refuse("username")
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups)+len(u.ImpersonateUserExtra) > 0:
		return refuse("as")
	}
	e.Token, e.TokenFile = u.Token, u.TokenFile
	cert, err := data(origin, "client-certificate", u.ClientCertificateData, u.ClientCertificate)
	if err != nil {
		return err
	}
	key, err := data(origin, "client-key", u.ClientKeyData, u.ClientKey)
	if err != nil {
		return err
	}
	if len(cert) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fail(nil, "kubeconfig %s: user %q: the client certificate and its key do not fit together", origin, name)
		}
		e.Certificate = &pair
	}
	return e.setExec(name, u, c)
}

// setExec sets the program that prints the credentials of a user. A token or a
// certificate next to it takes precedence, as with kubectl.
func (e *Endpoint) setExec(name string, u *api.AuthInfo, c *api.Cluster) error {
	if u.Exec == nil || e.Token != "" || e.TokenFile != "" || e.Certificate != nil {
		return nil
	}
	// Without its other fields, whose files clientcmd would open.
	one := api.Config{
		Contexts:  map[string]*api.Context{"c": {Cluster: "c", AuthInfo: name}},
		Clusters:  map[string]*api.Cluster{"c": {Server: e.Server}},
		AuthInfos: map[string]*api.AuthInfo{name: {Exec: u.Exec}},
	}
	if err := clientcmd.ConfirmUsable(one, "c"); err != nil {
		return fail(nil, "kubeconfig %s: user %q: exec: %s", u.LocationOfOrigin, name, strings.TrimPrefix(err.Error(), "invalid configuration: "))
	}
	e.Exec = u.Exec.DeepCopy()
	e.Exec.Config = c.Extensions[execExtension]
	return nil
}

// token returns the bearer token, read again where it is a file.
func (e *Endpoint) token() (string, error) {
	if e.Token != "" || e.TokenFile == "" {
		return e.Token, nil
	}
	b, err := readSmall(e.TokenFile)
	if err != nil {
		return "", fail(err, "context %q: read the token", e.Context)
	}
	return strings.TrimSpace(string(b)), nil
}
