package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

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

// awaitReady waits for the Ready condition of an object's current generation.
func (s space) awaitReady(kind, name, status, why string) client.Object {
	s.t.Helper()
	lists := map[string]client.ObjectList{
		v1alpha1.KindAgent: &v1alpha1.AgentList{}, v1alpha1.KindModel: &v1alpha1.ModelList{}, v1alpha1.KindTool: &v1alpha1.ToolList{}, v1alpha1.KindPolicy: &v1alpha1.PolicyList{},
		v1alpha1.KindSkill: &v1alpha1.SkillList{}, v1alpha1.KindWorkspace: &v1alpha1.WorkspaceList{}, v1alpha1.KindTest: &v1alpha1.TestList{},
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
