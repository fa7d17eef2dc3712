package kubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"agentctl.dev/agentctl/api/crds"
)

const (
	// patience is how long the server may take to get ready; alone on a machine
	// it takes three seconds.
	patience = 3 * time.Minute
	// stopPatience is how long a program may take to end before it is killed.
	stopPatience = time.Minute
	// tries is how often a port is chosen: another program may take it first.
	tries = 3
)

// Cluster is an etcd and a kube-apiserver that serves the kinds of agentctl,
// and nothing else: no controllers, no garbage collector, no nodes.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig with admin rights.
	Kubeconfig string

	dir, assets string
	port        int
	pki         *pki
	programs    []*program // in the order of their start
	thread      chan func()
}

// Start starts a cluster of the programs in a folder. It listens on loopback
// only; its database on a socket in a folder that only this user may enter.
func Start(assets string) (_ *Cluster, err error) {
	c := &Cluster{assets: assets, thread: make(chan func())}
	go c.starter()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a cluster: %w", err), c.Stop())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "kube-"); err != nil {
		return nil, err
	}
	if c.pki, err = newPKI(c.dir); err != nil {
		return nil, err
	}
	if err = c.startDatabase(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for try := range tries {
		if err = c.startServer(ctx); err == nil {
			break
		}
		if try == tries-1 || ctx.Err() != nil {
			return nil, err
		}
	}
	return c, c.define(ctx)
}

// Config is the configuration of clients that may do everything, as fast as they can.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// As is the configuration of clients with a user of that name, which may do
// what the cluster's roles allow.
func (c *Cluster) As(name string, groups ...string) (*rest.Config, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.CertData, config.KeyData, err = c.pki.user(name, groups...)
	return config, err
}

// Stop ends the programs, the last one first, and removes their folder.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range slices.Backward(c.programs) {
		errs = append(errs, p.stop())
	}
	close(c.thread)
	errs = append(errs, os.RemoveAll(c.dir))
	return errors.Join(errs...)
}

// starter starts programs on one thread until Stop: they die with the thread
// that has started them, and other threads come and go.
func (c *Cluster) starter() {
	runtime.LockOSThread()
	for start := range c.thread {
		start()
	}
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) start(name string, args ...string) (*program, error) {
	p := &program{cmd: exec.CommandContext(context.Background(), filepath.Join(c.assets, name), args...), ended: make(chan struct{})}
	p.cmd.Dir = c.dir
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = endsWithUs()
	started := make(chan error)
	c.thread <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its log explains more than its code
	}()
	c.programs = append(c.programs, p)
	return p, nil
}

func (c *Cluster) startDatabase() error {
	_, err := c.start("etcd",
		"--data-dir", c.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", "unix://"+c.path("etcd.sock"), "--advertise-client-urls", "http://127.0.0.1:2379",
		"--listen-peer-urls", "unix://"+c.path("peer.sock"))
	return err
}

// startServer starts the API server on a free port and waits until it is ready.
func (c *Cluster) startServer(ctx context.Context) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	p, err := c.start("kube-apiserver",
		"--etcd-servers", "unix://"+c.path("etcd.sock"),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--client-ca-file", c.path(caFile), "--tls-cert-file", c.path(servingFile), "--tls-private-key-file", c.path(servingKeyFile),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.path(servingKeyFile),
		"--service-account-signing-key-file", c.path(servingKeyFile),
		"--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none",
		"--authorization-mode", "RBAC", "--anonymous-auth=false", "--profiling=false")
	if err != nil {
		return err
	}
	c.port = port
	c.Kubeconfig = c.path("kubeconfig")
	if err := c.pki.writeKubeconfig(c.Kubeconfig, fmt.Sprintf("https://127.0.0.1:%d", port)); err != nil {
		return err
	}
	if err := c.awaitReady(ctx, p); err != nil {
		return errors.Join(fmt.Errorf("%w; it says:\n%s", err, p.log.tail()), p.stop())
	}
	return nil
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close() //nolint:forcetypeassert // it was asked to listen on TCP
}

func (c *Cluster) awaitReady(ctx context.Context, p *program) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready(ctx, client, config.Host+"/readyz") {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return errors.New("kube-apiserver ended before it was ready")
		case <-ctx.Done():
			return errors.New("kube-apiserver does not get ready")
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection is used again
	return resp.StatusCode == http.StatusOK
}

// define applies the definitions of agentctl's kinds, as an admin of a cluster
// would.
func (c *Cluster) define(ctx context.Context) error {
	definitions := bytes.Join(crds.Definitions(), []byte("\n---\n"))
	if err := c.Kubectl(ctx, definitions, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	return c.Kubectl(ctx, definitions, "wait", "--for=condition=Established", "--timeout=60s", "-f", "-")
}

// Kubectl runs kubectl as the admin.
func (c *Cluster) Kubectl(ctx context.Context, stdin []byte, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.assets, "kubectl"), append(args, "--kubeconfig", c.Kubeconfig, "--cache-dir", c.path("cache"))...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// program is a running program.
type program struct {
	cmd   *exec.Cmd
	log   lastWords
	ended chan struct{}
}

// stop asks a program to end, or kills it. It ignores a program that has ended.
func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(stopPatience)
	defer late.Stop()
	select {
	case <-p.ended:
		return nil
	case <-late.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("%s did not end within %s", filepath.Base(p.cmd.Path), stopPatience)
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

const mostWords = 16 << 10

// Write keeps the end.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if n := len(l.text) - mostWords; n > 0 {
		l.text = append(l.text[:0], l.text[n:]...)
	}
	return len(p), nil
}

func (l *lastWords) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
