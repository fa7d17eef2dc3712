// Package control reconciles the objects of a Kubernetes API server: it reports of each whether it can be used, and has runs executed.
//
// Nothing here assumes the embedded server: the controllers are those of
// controller-runtime, and runs are executed by an Executor.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/telemetry"
)

// Options say which objects are reconciled and how runs are executed.
type Options struct {
	// Config is for an identity that may read and write our kinds and their status.
	// Required.
	Config *rest.Config
	// State is the folder that holds runs; see statedir.Find. Required.
	State string
	// Log is where everything is logged to, including what the libraries say.
	// Required. The libraries have one logger per process: the latest wins.
	Log *slog.Logger
	// Limit is the number of runs that are executed at once; 0 is DefaultLimit.
	Limit int
	// AllowUnsandboxed runs tools that ask for a sandbox without one.
	AllowUnsandboxed bool
	// Containerd and Version are those of runner.RunOptions.
	Containerd, Version string
	// Collect enables garbage collection in this process, for an API server that has no
	// collector: the dependents of deleted objects are deleted or orphaned here.
	Collect bool
	// Drain is how long a stop waits for calls in progress to end. 0: they are cut
	// off, as if the process had been killed.
	Drain time.Duration
	// Room returns why no run is begun at present, for example because the disk is
	// full, or nil. Optional.
	Room func() error
	// StartedBy is the identity that began a Run, for rules that read run.user.
	// Default: it is not known, because only the API server of agentd vouches for it.
	StartedBy func(*v1alpha1.Run) string
	// Events records what happens to objects; nil writes to the log only.
	Events EventSink
	// Telemetry is that of runner.RunOptions.
	Telemetry *telemetry.Client
	// Started is called once everything is followed. Optional.
	Started func()
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// DefaultLimit is the default number of runs that are executed at once.
const DefaultLimit = 64

// stopPatience bounds how long runs may take to be left.
const stopPatience = 20 * time.Second

// Plane is the controllers and the workers of one API server.
type Plane struct {
	manager ctrl.Manager
	workers *Workers
	drain   time.Duration
	// stopping silences what libraries report while they are stopped.
	stopping *atomic.Bool
}

// New prepares a plane; Run starts it.
func New(o Options) (*Plane, error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // this is where the clock comes in
	}
	if o.Events == nil {
		o.Events = LogSink(o.Log)
	}
	stopping := &atomic.Bool{}
	logger := logr.FromSlogHandler(quiet(o.Log, stopping).Handler())
	log.SetLogger(logger)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds: %w", err)
	}
	patience := stopPatience
	m, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme: scheme, Logger: logger, MapperProvider: mapper,
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		GracefulShutdownTimeout: &patience,
		// Managed fields are half of an object, and no controller reads them.
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Controller: config.Controller{
			SkipNameValidation: new(true), // the names are checked process-wide: a test has several planes
			// Stopped while it hands out work, the priority queue waits for a worker that
			// has gone, and holds the lock that the others need to go.
			UsePriorityQueue: new(false),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the controllers: %w", err)
	}
	workers := NewWorkers(WorkerOptions{
		State: o.State, Limit: o.Limit, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd, Version: o.Version, Log: o.Log, Room: o.Room, Now: o.Now, Policies: presentPolicies(m.GetAPIReader()), Telemetry: o.Telemetry,
	})
	base := base{Client: m.GetClient(), live: m.GetAPIReader(), events: o.Events, now: o.Now, shared: workers.shared, startedBy: o.StartedBy}
	if err := setup(m, base, workers, workers, connect.ProbeOptions{State: o.State, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd}); err != nil {
		return nil, fmt.Errorf("prepare the controllers: %w", err)
	}
	if o.Collect {
		if err := (&collector{Client: client.WithFieldOwner(m.GetClient(), string(owner("collector"))), live: m.GetAPIReader()}).setup(m); err != nil {
			return nil, fmt.Errorf("prepare the controllers: %w", err)
		}
	}
	if o.Started != nil {
		// A runnable that is neither a source nor a controller is started when all objects
		// are in the cache.
		started := manager.RunnableFunc(func(context.Context) error { o.Started(); return nil })
		if err := m.Add(started); err != nil {
			return nil, fmt.Errorf("prepare the controllers: %w", err)
		}
	}
	return &Plane{manager: m, workers: workers, drain: o.Drain, stopping: stopping}, nil
}

// mapper knows the resources of our kinds. They need not be discovered, which
// takes a request and fails while a server still comes up.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	for _, name := range v1alpha1.Kinds() {
		kind, ok := crds.Kind(name)
		if !ok {
			return nil, fmt.Errorf("kind %s has no definition", name)
		}
		gv := v1alpha1.GroupVersion
		m.AddSpecific(gv.WithKind(name), gv.WithResource(kind.Plural), gv.WithResource(kind.Singular), meta.RESTScopeNamespace)
	}
	return m, nil
}

func setup(m ctrl.Manager, b base, e Executor, a Asker, probe connect.ProbeOptions) error {
	if err := index(m.GetFieldIndexer()); err != nil {
		return err
	}
	return errors.Join(
		(&modelReconciler{base: b}).setup(m),
		newToolReconciler(b, probe).setup(m),
		(&policyReconciler{base: b}).setup(m),
		(&skillReconciler{base: b}).setup(m),
		(&workspaceReconciler{base: b, state: probe.State}).setup(m),
		(&testReconciler{base: b}).setup(m),
		(&agentReconciler{base: b}).setup(m),
		newRunReconciler(b, e).setup(m),
		(&approvalReconciler{base: b, executor: e, asker: a}).setup(m),
	)
}

// Run reconciles objects until the context ends. Runs that are executed then stay as they
// are; the next plane on the same state folder continues them.
func (p *Plane) Run(ctx context.Context) error {
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if p.drain > 0 {
			p.workers.Drain(p.drain)
		}
		p.stopping.Store(true)
		cancel()
	})
	defer stop()
	err := p.manager.Start(follow)
	if stopped := p.workers.Stop(stopPatience); err == nil {
		err = stopped
	}
	if err != nil {
		return fmt.Errorf("follow the objects: %w", err)
	}
	return nil
}

// Client reads the objects as the controllers do, once they run, and writes them.
func (p *Plane) Client() client.Client { return p.manager.GetClient() }

// Reader reads the objects as they are now.
func (p *Plane) Reader() client.Reader { return p.manager.GetAPIReader() }

// Notify registers changed, which is called when there may be news about a run: for each
// event of a run that is executed here, and for each change of an object. It must not
// block. Call Notify before Run.
func (p *Plane) Notify(changed func(namespace, name string)) error {
	// It is filled once Run is called; to wait for that here would be for ever.
	runs, err := p.manager.GetCache().GetInformer(context.Background(), &v1alpha1.Run{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("follow the runs: %w", err)
	}
	about := func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if run, ok := obj.(client.Object); ok {
			changed(run.GetNamespace(), run.GetName())
		}
	}
	_, err = runs.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: about, UpdateFunc: func(_, obj any) { about(obj) }, DeleteFunc: about,
	})
	if err != nil {
		return fmt.Errorf("follow the runs: %w", err)
	}
	p.workers.heard = changed
	return nil
}

// Executes reports whether the run of that id is executed here.
func (p *Plane) Executes(id string) bool { return p.workers.executes(id) }

// Busy reports whether a run is executed or queued. A suspended run does not count,
// whatever it waits for: it executes nothing, and may wait for days.
func (p *Plane) Busy() bool { return p.workers.Busy() }
