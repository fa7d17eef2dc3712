package control

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/manifest"
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
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.plane.Run(ctx) }()
}

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

// space is a namespace of the shared server.
type space struct {
	client.WithWatch
	t    testing.TB
	name string
}

// spaces counts the namespaces of this process.
var spaces atomic.Int64

// newSpace returns a namespace that is the test's own.
func newSpace(t testing.TB) space {
	t.Helper()
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, t.Name()), "-")
	// A test that is run again must not meet what it left the first time.
	return space{sharedPlane(t).client, t, fmt.Sprintf("%s-%d", name[:min(len(name), 50)], spaces.Add(1))}
}

// objects reads manifests as objects of the API.
func objects(t testing.TB, namespace, manifests string) []*unstructured.Unstructured {
	t.Helper()
	set, found := manifest.Parse(context.Background(), "test", []byte(manifests))
	if found.HasErrors() {
		t.Fatalf("the test's own manifests: %+v", found)
	}
	var all []*unstructured.Unstructured
	for _, d := range set.Documents {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(d.JSON); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(namespace)
		all = append(all, u)
	}
	return all
}

// apply writes objects as agentctl does.
func (s space) apply(manifests string) {
	s.t.Helper()
	for _, u := range objects(s.t, s.name, manifests) {
		if err := s.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			s.t.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// patience is what a test waits at most; only a failure takes it.
const patience = 5 * time.Minute

// await waits by a watch until an object is as wanted, and returns it.
func await[T client.Object](s space, obj T, list client.ObjectList, name string, want func(T) bool) T {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	obj.SetNamespace(s.name)
	obj.SetName(name)
	last := obj
	for ctx.Err() == nil { // a watcher that the machine is too busy for is dropped, and comes again
		w, err := s.Watch(ctx, list, client.InNamespace(s.name))
		if err != nil {
			s.t.Fatal(err)
		}
		for e := range w.ResultChan() { // it begins with what is there, and ends with the context
			if o, ok := e.Object.(T); ok && o.GetName() == name {
				if last = o; want(o) {
					w.Stop()
					return o
				}
			}
		}
		w.Stop()
	}
	s.t.Fatalf("%s %s does not come to what is wanted; its conditions are %+v", kindOf(obj), name, conditionsOf(last))
	return last
}

// awaitReady waits until an object says of its present generation that it is
// ready, or not, and why.
func (s space) awaitReady(kind, name, status, why string) client.Object {
	s.t.Helper()
	lists := map[string]client.ObjectList{
		v1alpha1.KindAgent: &v1alpha1.AgentList{}, v1alpha1.KindModel: &v1alpha1.ModelList{}, v1alpha1.KindTool: &v1alpha1.ToolList{}, v1alpha1.KindPolicy: &v1alpha1.PolicyList{},
		v1alpha1.KindSkill: &v1alpha1.SkillList{}, v1alpha1.KindWorkspace: &v1alpha1.WorkspaceList{},
	}
	return await[client.Object](s, newObject(kind), lists[kind], name, func(o client.Object) bool {
		r := readyOf(o)
		return r.status == status && r.why == why && r.generation == o.GetGeneration()
	})
}

// awaitPhase waits until a run is in one of the phases.
func (s space) awaitPhase(name string, phases ...v1alpha1.Phase) *v1alpha1.Run {
	s.t.Helper()
	return await(s, &v1alpha1.Run{}, &v1alpha1.RunList{}, name, func(r *v1alpha1.Run) bool { return slices.Contains(phases, r.Status.Phase) })
}

func (s space) watchRuns() watch.Interface {
	s.t.Helper()
	w, err := s.Watch(context.Background(), &v1alpha1.RunList{}, client.InNamespace(s.name))
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// delete deletes an object and waits until it is gone.
func (s space) delete(run *v1alpha1.Run) {
	s.t.Helper()
	w := s.watchRuns()
	defer w.Stop()
	if err := s.Delete(context.Background(), run); err != nil {
		s.t.Fatal(err)
	}
	s.awaitGone(w, run)
}

func (s space) awaitGone(w watch.Interface, obj client.Object) {
	s.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				s.t.Fatal("the watch ended")
			}
			if o, is := e.Object.(client.Object); is && e.Type == watch.Deleted && o.GetName() == obj.GetName() {
				return
			}
		case <-late.C:
			s.t.Fatalf("%s is still there", docName(kindOf(obj), obj.GetName()))
		}
	}
}
