package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	authenticators "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"agentctl.dev/agentctl/runner/control/embedded/events"
)

const (
	// apiPatience is how long the API may take to get ready.
	apiPatience = time.Minute
	// drain is how long a stop waits for requests and watches to end.
	drain = 2 * time.Second
)

// parts are what the API server is made of.
type parts struct {
	endpoint     string // of the database
	port         string
	certificates *certificates
	tokens       *Tokens
	audit        *auditLog
	disk         *disk
	activity     *activity
	leases       *leases
	mount        *mount
	events       *events.Store
	histories    *histories
	bodyTimeout  time.Duration
	version      string
	now          func() time.Time
}

// newAPI assembles the API server that a cluster runs for custom resources,
// without the parts that need a core API server next to it.
func newAPI(p parts) (*genericapiserver.GenericAPIServer, error) {
	o := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	r := o.RecommendedOptions
	r.SecureServing, r.Authentication, r.Authorization, r.Admission, r.CoreAPI = nil, nil, nil, nil, nil
	r.Features.EnablePriorityAndFairness = false // needs core informers
	r.Features.EnableProfiling = false
	r.Etcd.StorageConfig.Transport.ServerList = []string{p.endpoint}
	// The server reads its own definitions while it starts. A cache that is not
	// filled yet would send it away for a second; from the database they come at once.
	r.Etcd.WatchCacheSizes = []string{"customresourcedefinitions.apiextensions.k8s.io#0"}
	// A delete of a definition in the foreground would wait for a garbage
	// collector that only knows the kinds of agentctl.
	r.Etcd.EnableGarbageCollection = false
	o.ServerRunOptions.ShutdownWatchTerminationGracePeriod = drain
	if err := o.Complete(); err != nil {
		return nil, fmt.Errorf("complete the options of the API server: %w", err)
	}
	c := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	c.SharedInformerFactory = informers.NewSharedInformerFactory(nil, 0) // empty, only there to be started
	c.LoopbackClientConfig = loopback(p)
	if err := errors.Join(o.ServerRunOptions.ApplyTo(&c.Config), r.ApplyTo(c),
		o.APIEnablement.ApplyTo(&c.Config, apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme)); err != nil {
		return nil, fmt.Errorf("apply the options of the API server: %w", err)
	}
	c.EffectiveVersion = stamped{c.EffectiveVersion, p.version}
	if err := secure(c, p); err != nil {
		return nil, err
	}
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(events.Describe(generatedopenapi.GetOpenAPIDefinitions))
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	// Both: the publisher of the schemas of custom resources starts only if
	// there is a v2 document.
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIConfig.Info.Title, c.OpenAPIV3Config.Info.Title = "agentd", "agentd"
	// A delete with a propagation policy records it in the object as a
	// finalizer, for the controllers; see control.Options.Collect.
	objects := *r.Etcd
	objects.EnableGarbageCollection = true
	c.AddReadyzChecks(healthz.NamedCheck(runsCheck, p.mount.ready))
	complete := (&apiserver.Config{GenericConfig: c, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: getter{options.NewCRDRESTOptionsGetter(objects, c.ResourceTransformers, c.StorageObjectCountTracker), p.histories},
		AuthResolverWrapper:  webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, c.LoopbackClientConfig, noop.NewTracerProvider()),
	}}).Complete()
	// On a cluster the aggregator in front of this server lists the groups; here
	// there is none.
	complete.GenericConfig.EnableDiscovery = true
	server, err := complete.New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("build the API server: %w", err)
	}
	listGroups(server.GenericAPIServer)
	if err := events.Install(server.GenericAPIServer, p.events); err != nil {
		return nil, err
	}
	return server.GenericAPIServer, nil
}

// secure sets authentication, authorization and the audit log.
func secure(c *genericapiserver.RecommendedConfig, p parts) error {
	// Both before Complete and neither nil: otherwise every client is
	// administrator.
	c.Authentication.Authenticator = authenticators.New(bearertoken.New(p.tokens), websocket.NewProtocolAuthenticator(p.tokens))
	c.Authorization.Authorizer = newAuthorizer()
	c.AuditBackend, c.AuditPolicyRuleEvaluator = p.audit, p.audit
	c.AdmissionControl = admitter{}
	c.EnableMetrics, c.EnableIndex = true, false
	c.RequestInfoResolver = resolver{genericapiserver.NewRequestInfoResolver(&c.Config)}
	c.LongRunningFunc = longRunning
	c.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		p.mount.api = api
		chain := genericapiserver.DefaultBuildHandlerChain(p.activity.watch(p.leases.hold(&reviews{p.disk.hold(newSettling(p.now).hold(p.mount)), c.Authorization.Authorizer})), c)
		return newGuard(chain, p.port, c.Authentication.Authenticator, newBodies(p.bodyTimeout), p.now)
	}
	cert, err := dynamiccertificates.NewStaticCertKeyContent("serving", p.certificates.serving.certPEM, p.certificates.serving.keyPEM)
	if err != nil {
		return fmt.Errorf("use the serving certificate: %w", err)
	}
	// The generic server insists on its own listener, with time-outs of its own
	// and logs on standard error. It gets a listener without connections.
	c.SecureServing = &genericapiserver.SecureServingInfo{Listener: newNowhere(), Cert: cert, MinTLSVersion: tls.VersionTLS13}
	c.ExternalAddress = net.JoinHostPort("127.0.0.1", p.port)
	return nil
}

// loopback is the configuration of clients in this process. Its token is
// created by every start and never leaves the process.
func loopback(p parts) *rest.Config {
	return &rest.Config{
		Host: serverURL(p.port), BearerToken: newToken(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.certificates.ca.certPEM},
	}
}

// waitReady polls until the API is ready. Who serves the runs needs it for that.
func waitReady(ctx context.Context, loopback *rest.Config, failed <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	client, err := rest.HTTPClientFor(loopback)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, err := status(ctx, client, loopback.Host+"/readyz?exclude="+runsCheck); err == nil && code == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-failed:
			return errors.New("the API server stopped while it was starting")
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server: %w", ctx.Err())
		}
	}
}

func status(ctx context.Context, client *http.Client, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection is used again
	return resp.StatusCode, err
}

// nowhere is a listener that never has a connection.
type nowhere struct {
	closed chan struct{}
	once   sync.Once
}

func newNowhere() *nowhere { return &nowhere{closed: make(chan struct{})} }

// Accept waits until the listener is closed.
func (n *nowhere) Accept() (net.Conn, error) {
	<-n.closed
	return nil, net.ErrClosed
}

// Close ends Accept.
func (n *nowhere) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr is an address at which nothing listens.
func (*nowhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
