package client

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

// maxConfig bounds a kubeconfig and what it names.
const maxConfig = 1 << 20

// kubeconfig is the part of a kubeconfig file that we read. What we would have
// to obey and do not is read, too, so that it can be refused.
type kubeconfig struct {
	path string

	CurrentContext string `json:"current-context"`
	Clusters       []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster   string `json:"cluster"`
			User      string `json:"user"`
			Namespace string `json:"namespace"`
		} `json:"context"`
	} `json:"contexts"`
}

type cluster struct {
	Server     string `json:"server"`
	ServerName string `json:"tls-server-name"`
	CAFile     string `json:"certificate-authority"`
	CAData     string `json:"certificate-authority-data"`
	Insecure   bool   `json:"insecure-skip-tls-verify"`
	ProxyURL   string `json:"proxy-url"`
}

type user struct {
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
	CertFile  string `json:"client-certificate"`
	CertData  string `json:"client-certificate-data"`
	KeyFile   string `json:"client-key"`
	KeyData   string `json:"client-key-data"`

	Exec         *struct{ Command string } `json:"exec"`
	AuthProvider *struct{ Name string }    `json:"auth-provider"`
	Username     string                    `json:"username"`
	As           string                    `json:"as"`
}

// readConfig reads a kubeconfig file.
func readConfig(path string) (*kubeconfig, error) {
	text, err := readSmall(path)
	if err != nil {
		return nil, fail(err, "read the kubeconfig")
	}
	return parseConfig(path, text)
}

func parseConfig(path string, text []byte) (*kubeconfig, error) {
	k := &kubeconfig{path: path}
	if err := yaml.Unmarshal(text, k); err != nil {
		return nil, fail(nil, "kubeconfig %s: %s", path, plain(err)).
			hint("repair it, or name another by AGENTCTL_KUBECONFIG; runs of the state folder need none")
	}
	return k, nil
}

// plain leaves the values out of an error: they may be secrets.
func plain(err error) string {
	text := err.Error()
	if strings.Contains(text, "cannot unmarshal") {
		_, field, _ := strings.Cut(text, "Go struct field ")
		field, _, _ = strings.Cut(field, " of type")
		_, field, _ = strings.Cut(field, ".")
		return "the field " + field + " has the wrong type"
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

// beside makes a path absolute: those of a kubeconfig start from its folder.
func (k *kubeconfig) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(k.path), path)
}

// data returns what stands in the file, or in the file that it names.
func (k *kubeconfig) data(what, inline, file string) ([]byte, error) {
	if inline != "" {
		b, err := base64.StdEncoding.DecodeString(inline)
		if err != nil {
			return nil, fail(nil, "kubeconfig %s: %s-data is no base64", k.path, what)
		}
		return b, nil
	}
	if file == "" {
		return nil, nil
	}
	b, err := readSmall(k.beside(file))
	if err != nil {
		return nil, fail(err, "kubeconfig %s: %s", k.path, what)
	}
	return b, nil
}

func (k *kubeconfig) cluster(e *Endpoint, name string, c *cluster) error {
	switch {
	case c.Server == "":
		return fail(nil, "kubeconfig %s: cluster %q names no server", k.path, name)
	case c.Insecure:
		return fail(nil, "kubeconfig %s: cluster %q has insecure-skip-tls-verify: anybody could be it, and be given the token", k.path, name).
			hint("write the certificate-authority-data of the server instead")
	case c.ProxyURL != "":
		return fail(nil, "kubeconfig %s: cluster %q has proxy-url, which is not read here", k.path, name).hint("set HTTPS_PROXY")
	}
	ca, err := k.data("certificate-authority", c.CAData, c.CAFile)
	if err != nil {
		return err
	}
	e.Server, e.ServerName, e.CA = c.Server, c.ServerName, ca
	return nil
}

func (k *kubeconfig) user(e *Endpoint, name string, u *user) error {
	refuse := func(field string) error {
		return fail(nil, "kubeconfig %s: user %q has %s, which is not read here: no program is started for a token", k.path, name, field).
			hint("use a token, a tokenFile or a client certificate: for example kubectl create token, or agentd token create")
	}
	switch {
	case u.Exec != nil:
		return refuse("exec")
	case u.AuthProvider != nil:
		return refuse("auth-provider")
	case u.Username != "":
		return refuse("username")
	case u.As != "":
		return refuse("as")
	}
	e.Token, e.TokenFile = u.Token, k.beside(u.TokenFile)
	cert, err := k.data("client-certificate", u.CertData, u.CertFile)
	if err != nil {
		return err
	}
	key, err := k.data("client-key", u.KeyData, u.KeyFile)
	if err != nil {
		return err
	}
	if len(cert) == 0 && len(key) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fail(nil, "kubeconfig %s: user %q: the client certificate and its key do not fit together", k.path, name)
	}
	e.Certificate = &pair
	return nil
}

// token returns who we are, read anew where it is a file.
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
