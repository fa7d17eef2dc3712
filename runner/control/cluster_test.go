package control

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control/controltest"
	"agentctl.dev/agentctl/runner/control/embedded/kubetest"
)

// realOne is the API server of a cluster. The controllers there run with the rights of
// rightsYAML, and no others.
var realOne kubetest.Shared

const controllerName = "agentctl-controller"

// rightsYAML is what the controllers need on a cluster.
const rightsYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agentctl-controller}
rules:
- apiGroups: [agentctl.dev]
  resources: [agents, models, policies, skills, tests, tools, workspaces]
  verbs: [get, list, watch]
- apiGroups: [agentctl.dev]
  resources: [runs]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [agentctl.dev]
  resources: [approvals]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [agentctl.dev]
  resources: ["*/status"]
  verbs: [patch, update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [get, create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agentctl-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agentctl-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: agentctl-controller}]
`

// onCluster is a plane that follows the objects of a cluster.
type onCluster struct {
	space
	cluster *kubetest.Cluster
	state   string
	log     controltest.Log
	stop    func()
}

func newOnCluster(t *testing.T) *onCluster {
	t.Helper()
	c := &onCluster{cluster: realOne.Cluster(t), state: t.TempDir()}
	if err := c.cluster.Kubectl(t.Context(), []byte(rightsYAML), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	admin, err := c.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	all, err := newClient(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("plane-%d", spaces.Add(1))
	if err := c.cluster.Kubectl(t.Context(), nil, "create", "namespace", name); err != nil {
		t.Fatal(err)
	}
	c.space = space{all, t, name}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", c.log.String())
		}
	})
	c.start()
	return c
}

// start starts the controllers; c.stop stops them.
func (c *onCluster) start() {
	c.t.Helper()
	config, err := c.cluster.As(controllerName)
	if err != nil {
		c.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&c.log, nil))
	events := NewClusterEvents(eventsClient(c.t, config), "test", log, time.Now)
	p, err := New(Options{Config: config, State: c.state, Log: log, Limit: 4, AllowUnsandboxed: true, Version: "test", Events: events})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- events.Start(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; err != nil {
				c.t.Errorf("the controllers end with: %v", err)
			}
		}
	})
	c.t.Cleanup(c.stop)
}

func eventsClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := eventsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTheControllersWorkOnACluster: none of them assumes the embedded server. Event
// streams and decisions are agentd's own HTTP API, which no cluster serves: here an
// approver writes the status that agentd would write.
func TestTheControllersWorkOnACluster(t *testing.T) {
	t.Parallel()
	c := newOnCluster(t)
	if !t.Run("ready", func(t *testing.T) {
		c.apply(agentYAML + sep + toolYAML + sep + policyYAML)
		c.awaitReady("Agent", "worker", "False", "ReferenceNotFound")
		c.apply(modelYAML)
		c.awaitReady("Agent", "worker", "True", "Accepted")
	}) {
		return // without it, each of the others would wait for long
	}
	t.Run("run", func(t *testing.T) {
		c.apply(runYAML("one", ""))
		run := c.awaitPhase("one", v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled)
		if run.Status.Phase != v1alpha1.PhaseSucceeded || run.Status.Steps != 3 || !strings.HasPrefix(run.Status.Output, "done: ") || len(run.OwnerReferences) != 1 {
			t.Errorf("it ended as %+v", run.Status)
		}
	})
	t.Run("events", c.eventsAreWritten)
	t.Run("approval", c.aRunAsks)
	t.Run("restart", c.anotherGoesOn)
	t.Run("agent", func(t *testing.T) {
		run := c.awaitPhase("one", v1alpha1.PhaseSucceeded)
		w := c.watchRuns()
		defer w.Stop()
		if err := c.Delete(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: c.name, Name: "worker"}}); err != nil {
			t.Fatal(err)
		}
		c.awaitGone(w, run)
	})
	// What it may not do it would have said, and gone on.
	if log := c.log.String(); strings.Contains(log, "forbidden") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log:\n%s", log)
	}
}

func (c *onCluster) eventsAreWritten(t *testing.T) {
	config, err := c.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	all := eventsClient(t, config)
	var list eventsv1.EventList
	// Events are written after the change that they report.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; !told["Agent worker Accepted"] || !told["Run one Completed"]; <-tick.C {
		if err := all.List(ctx, &list, client.InNamespace(c.name)); err != nil {
			t.Fatalf("the events are %v: %v", told, err)
		}
		for i := range list.Items {
			e := &list.Items[i]
			told[e.Regarding.Kind+" "+e.Regarding.Name+" "+e.Reason] = true
		}
	}
}

func (c *onCluster) aRunAsks(t *testing.T) {
	asking := strings.NewReplacer("name: worker", "name: asker", "policyRefs: [{name: open}]", "policyRefs: [{name: ask}]\n  approvals: {onAsk: Suspend}").Replace(agentYAML)
	c.apply(asking + sep + head + "kind: Policy\nmetadata: {name: ask}\nspec: {default: ask}\n" + sep + strings.Replace(runYAML("asks", ""), "{name: worker}", "{name: asker}", 1))
	for range 2 { // the script calls twice
		run := c.awaitPhase("asks", v1alpha1.PhaseSuspended, v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
		if run.Status.Phase != v1alpha1.PhaseSuspended {
			t.Fatalf("it is %+v", run.Status)
		}
		open := c.awaitOpen(t)
		now := metav1.NewTime(time.Now())
		open.Status.Decision, open.Status.Scope, open.Status.By, open.Status.DecidedAt = v1alpha1.DecisionApproved, v1alpha1.ScopeOnce, "jane", &now
		if err := c.Status().Update(t.Context(), open); err != nil {
			t.Fatal(err)
		}
		await(c.space, &v1alpha1.Approval{}, &v1alpha1.ApprovalList{}, open.Name, func(a *v1alpha1.Approval) bool { return a.Status.TakenAt != nil })
	}
	if run := c.awaitPhase("asks", v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded); run.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("it ended as %+v", run.Status)
	}
}

// awaitOpen waits for an Approval without a decision.
func (c *onCluster) awaitOpen(t *testing.T) *v1alpha1.Approval {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := c.Watch(ctx, &v1alpha1.ApprovalList{}, client.InNamespace(c.name))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if a, ok := e.Object.(*v1alpha1.Approval); ok && a.Status.Decision == "" {
			return a
		}
	}
	t.Fatal("nobody is asked")
	return nil
}

// anotherGoesOn stops the controllers while a run is executed.
func (c *onCluster) anotherGoesOn(t *testing.T) {
	manifests, fifo := hangingOnce(t)
	c.apply(strings.ReplaceAll(manifests, "echo", "hang") + sep + runYAML("left", ""))
	begun(t, fifo)
	before := c.awaitPhase("left", v1alpha1.PhaseRunning)
	c.stop()
	c.start()
	run := c.awaitPhase("left", v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded)
	if run.Status.Phase != v1alpha1.PhaseSucceeded || run.Status.Journal.Path != before.Status.Journal.Path {
		t.Errorf("it ended as %+v", run.Status)
	}
	if folders, err := os.ReadDir(c.state + "/runs"); err != nil || len(folders) != 3 {
		t.Errorf("there are %d folders of runs (%v): one was begun twice", len(folders), err)
	}
}
