package control

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded"
)

// childEnv is the state folder of a test binary that is to be agentd.
const childEnv = "CONTROL_TEST_STATE"

func TestMain(m *testing.M) {
	if state := os.Getenv(childEnv); state != "" {
		os.Exit(child(state))
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared control plane:", err)
		code = 1
	}
	if err := realOne.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the cluster:", err)
		code = 1
	}
	if code == 0 {
		// What the API server leaves is its own; runner/control/embedded looks at that.
		if err := goleak.Find(controltest.LeftByServer()...); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is the one server that a process can have, and the plane that follows it.
var shared plane

type plane struct {
	once   sync.Once
	dir    string
	server *embedded.Server
	stop   context.CancelFunc
	ended  chan error
	client client.WithWatch
	plane  *Plane
	log    controltest.Log
	err    error
}

func (p *plane) start() {
	if p.dir, p.err = os.MkdirTemp("", "control-"); p.err != nil {
		return
	}
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	if p.server, p.err = embedded.Start(context.Background(), embedded.Options{State: p.dir, Log: log}); p.err != nil {
		return
	}
	if p.client, p.err = newClient(p.server.Loopback()); p.err != nil {
		return
	}
	if p.plane, p.err = New(Options{Config: p.server.Loopback(), State: p.dir, Log: log, Limit: atOnce(), Collect: true, AllowUnsandboxed: true, Version: "test"}); p.err != nil {
		return
	}
	p.plane.workers.keep = keptInMemory
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.plane.Run(ctx) }()
}

// keptInMemory is how many runs wait for people in memory in tests: others are parked.
const keptInMemory = 8

// atOnce is 16 runs in tests, and as many as agentd takes in benchmarks.
func atOnce() int {
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" {
		return DefaultLimit
	}
	return 16
}

func (p *plane) close() (err error) {
	if p.stop != nil {
		p.stop()
		err = <-p.ended
	}
	if p.server != nil {
		if stopped := p.server.Stop(); err == nil {
			err = stopped
		}
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
	return err
}

func newClient(c *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	kinds, err := mapper(nil, nil)
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(c, client.Options{Scheme: scheme, Mapper: kinds})
}

func sharedPlane(t testing.TB) *plane {
	t.Helper()
	shared.once.Do(shared.start)
	if shared.err != nil {
		t.Fatalf("start the shared control plane: %v\n%s", shared.err, shared.log.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", shared.log.String())
		}
	})
	return &shared
}
