// Package embedded runs a Kubernetes API server for the kinds of agentctl inside this process, on an etcd that no other process can reach.
//
// It is the code that a cluster runs for custom resources, so kubectl works on
// it and the controllers need not know the difference. Of the core kinds there
// are events, which only the server writes. What is not there: namespace
// objects, garbage collection of owner references, secrets, leases and
// admission plugins.
//
// Objects of agentctl's kinds are in the registry store of k8s.io/apiserver.
// Three parts are implemented here although a library has something similar:
//
//   - Events (package events) are in memory and in a file. A registry store would
//     write each of them to etcd, and has no limit for the events of one object.
//   - The audit log keeps lines for which the disk has no room until it has some,
//     and bounds the refused requests of one identity. The log backend of
//     apiserver drops a line that it cannot write, and has neither the limit nor
//     this format.
//   - The certificates come from crypto/x509. client-go's util/cert makes only
//     authorities that may sign for every name, and serving certificates only
//     together with a new authority. The authority here is limited to this machine and
//     stays when a serving certificate is renewed.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/runner/control/embedded/events"
)

// Options are the settings of a server.
type Options struct {
	// State is the state folder; the control plane keeps to control below it.
	// Required.
	State string
	// Log gets all log entries, also those of the libraries. Required. The
	// libraries have one logger per process: the latest wins.
	Log *slog.Logger
	// IdleAfter is how long the server must be unused until Idle is closed. 0:
	// never.
	IdleAfter time.Duration
	// Busy reports whether there is work without requests: the server is not
	// idle then. Optional.
	Busy func() bool
	// Forgot is called when much memory can be given back to the system. Default: the
	// garbage is collected and given back.
	Forgot func()
	// Version of this program, which /version shows after that of Kubernetes.
	// Optional.
	Version string
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	headerTimeout, bodyTimeout time.Duration // a test has no time
}

const (
	// headerTimeout is how long a client may take to send the head of a request,
	// including the TLS handshake, and to have a request with a valid token on a new
	// connection.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 90 * time.Second
	// maxHeader bounds the head of a request.
	maxHeader = 128 << 10
	// maxStreams bounds the requests at a time on one connection: each watch is
	// one.
	maxStreams = 1000
)

// Server is a control plane's API, from Start to Stop. There can be one in a
// process: its libraries have feature gates and metrics for the whole of it.
type Server struct {
	folder    *folder
	database  *database
	tokens    *Tokens
	audit     *auditLog
	disk      *disk
	activity  *activity
	leases    *leases
	mount     *mount
	events    *events.Store
	histories *histories
	loopback  *rest.Config
	http      *http.Server
	listener  net.Listener

	cancel context.CancelFunc // ends the API server
	api    chan struct{}      // closed when the API server has ended
	wg     sync.WaitGroup
	done   chan struct{}
	fail   sync.Once
	err    error
	stop   sync.Once

	stopping atomic.Bool // errors of libraries are ignored while the server stops
}

// Start starts the server and returns when it is ready: the kinds of agentctl
// are served, and the kubeconfig is written. The context bounds the start only.
//
//	error               the folder
//	nil                 is held until Stop
//	*HeldError          belongs to another process, nothing was touched
//	*Error, any other   is released, nothing runs any more
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock
	}
	if o.Forgot == nil {
		o.Forgot = debug.FreeOSMemory
	}
	if o.headerTimeout == 0 {
		o.headerTimeout = headerTimeout
	}
	if o.bodyTimeout == 0 {
		o.bodyTimeout = bodyTimeout
	}
	s := &Server{done: make(chan struct{}), activity: newActivity(o.IdleAfter, o.Busy), mount: &mount{}, histories: newHistories(o.Forgot)}
	if s.folder, err = openFolder(ctx, o.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	klog.SetSlogLogger(library(o.Log, "apiserver", &s.stopping))
	if _, err := os.Stat(s.folder.path(etcdDir)); errors.Is(err, os.ErrNotExist) {
		o.Log.Info("preparing the control plane (first start)")
	}
	if s.tokens, err = OpenTokens(o.State, o.Now); err != nil {
		return nil, err
	}
	if _, err = s.tokens.List(); err != nil {
		return nil, err // found by every request otherwise
	}
	s.leases = newLeases(s.tokens)
	certs, err := openCertificates(s.folder.dir, o.Now)
	if err != nil {
		return nil, fmt.Errorf("open the certificates in %s: %w", s.folder.dir, err)
	}
	if s.audit, err = openAudit(s.folder.path(auditFile), o.Log); err != nil {
		return nil, err
	}
	s.events = events.Open(events.Options{Path: s.folder.path(eventsFile), Log: o.Log, Now: o.Now})
	if s.database, err = startDatabase(ctx, s.folder, library(o.Log, "etcd", &s.stopping)); err != nil {
		return nil, err
	}
	s.disk = &disk{dir: s.folder.dir, reserve: diskReserve, free: freeSpace, audit: s.audit, ahead: s.database.reserve, log: o.Log}
	_ = s.disk.room() // reported by the log; reading does not need it
	if err = s.listen(ctx); err != nil {
		return nil, err
	}
	if err = s.serve(ctx, certs, o); err != nil {
		return nil, err
	}
	if err = applyDefinitions(ctx, s.loopback, crds.Definitions()); err != nil {
		return nil, err
	}
	if err = s.publish(ctx, certs); err != nil {
		return nil, err
	}
	s.activity.start()
	return s, nil
}

// serve starts the API server and waits until it is ready.
func (s *Server) serve(ctx context.Context, certs *certificates, o Options) error {
	server, err := newAPI(parts{
		endpoint: s.database.endpoint(), port: s.port(), certificates: certs,
		tokens: s.tokens, audit: s.audit, disk: s.disk, activity: s.activity, leases: s.leases, mount: s.mount, events: s.events,
		version: o.Version, histories: s.histories, bodyTimeout: o.bodyTimeout, now: o.Now,
	})
	if err != nil {
		return err
	}
	s.loopback = server.LoopbackClientConfig
	prepared := server.PrepareRun()
	s.http = &http.Server{
		Handler: prepared.Handler, TLSConfig: certs.tls(), MaxHeaderBytes: maxHeader, ConnContext: withConnection,
		ReadHeaderTimeout: o.headerTimeout, IdleTimeout: idleTimeout,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(library(o.Log, "http", &s.stopping).Handler(), slog.LevelInfo),
	}
	s.listener = limitConnections(s.listener, connectionLimit(), o.headerTimeout, userOfPeer)
	s.run(prepared.RunWithContext)
	// A server that is stopped while its start hooks run ends the whole process: what
	// has begun is completed, also when a signal came meanwhile.
	if err := waitReady(context.WithoutCancel(ctx), s.loopback, s.done); err != nil {
		return errors.Join(s.Err(), err)
	}
	return context.Cause(ctx)
}

// run starts what runs until Stop.
func (s *Server) run(api func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.api = cancel, make(chan struct{})
	s.wg.Go(func() {
		defer close(s.api)
		err := api(ctx)
		if ctx.Err() == nil {
			s.failed(fmt.Errorf("the API server stopped: %w", orUnknown(err)))
		}
	})
	s.wg.Go(func() { s.leases.run(ctx) })
	s.wg.Go(func() { s.histories.run(ctx, s.activity.unused) })
	s.wg.Go(func() {
		if err := s.http.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.failed(fmt.Errorf("the API server stopped listening: %w", err))
		}
	})
	s.wg.Go(func() {
		var err error
		select {
		case err = <-s.database.failed():
		case <-s.database.stopped():
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			s.failed(fmt.Errorf("the database stopped: %w", orUnknown(err)))
		}
	})
}

var errUnknown = errors.New("it did not say why")

func orUnknown(err error) error {
	if err == nil {
		return errUnknown
	}
	return err
}

func (s *Server) failed(err error) {
	s.fail.Do(func() {
		s.err = err
		close(s.done)
	})
}

// publish writes the kubeconfig.
func (s *Server) publish(ctx context.Context, certs *certificates) error {
	path := s.folder.path(kubeconfigFile)
	token, err := s.tokens.ensure(ctx, Identity{Name: localIdentity, Role: RoleAdmin}, readToken(path))
	if err != nil {
		return fmt.Errorf("make the token of the kubeconfig: %w", err)
	}
	return writeKubeconfig(path, s.URL(), token, certs.ca.certPEM)
}

// Handle sets the handler for the subresources that run outside the object
// store, such as the events of a run. It gets a request when the server has
// authorized it, with the path that was checked; IdentityOf returns the
// identity of the client. Until there is a handler such requests are to be
// tried again. A long-running request ends with its context; the cause of the
// context is the reason.
func (s *Server) Handle(h http.Handler) { s.mount.live.Store(&h) }

// Kubeconfig is the path of a kubeconfig with admin rights.
func (s *Server) Kubeconfig() string { return s.folder.path(kubeconfigFile) }

// Room returns why the server refuses writes at present, or nil: the disk is full,
// or nearly.
func (s *Server) Room() error { return s.disk.room() }

// Loopback returns the configuration of clients in this process, which may do
// everything.
func (s *Server) Loopback() *rest.Config { return rest.CopyConfig(s.loopback) }

// Tokens are the identities of this server.
func (s *Server) Tokens() *Tokens { return s.tokens }

// Events keeps what happens to objects; its readers find it in the API.
func (s *Server) Events() *events.Store { return s.events }

// Idle is closed when the server has been unused for Options.IdleAfter.
func (s *Server) Idle() <-chan struct{} { return s.activity.idle }

// Done is closed when the server has failed; Err returns the error. Stop must
// still be called.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server failed; nil while it has not.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
