package embedded

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var runsResource = schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "runs"}

func runNamed(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"agentRef": map[string]any{"name": "a"}, "prompt": strings.Repeat("x", 500)},
	}}
}

func client(t testing.TB, p *process) dynamic.ResourceInterface {
	t.Helper()
	d, err := dynamic.NewForConfig(p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return d.Resource(runsResource).Namespace("default")
}

// TestAcknowledgedObjectsSurviveKills kills the server while it is written to by
// several clients, again and again, and looks for every object it said it has.
func TestAcknowledgedObjectsSurviveKills(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	state := stateDir(t)
	var acknowledged sync.Map
	var count atomic.Int64
	kubeconfigPort := ""
	for round := range rounds {
		p := start(t, state)
		c := client(t, p)
		if port := p.config(t).Host; kubeconfigPort != "" && port != kubeconfigPort {
			t.Logf("round %d: another port: %s after %s", round, port, kubeconfigPort)
		} else {
			kubeconfigPort = port
		}
		missing(t, c, &acknowledged)
		var wg sync.WaitGroup
		enough := make(chan struct{})
		var once sync.Once
		before := count.Load()
		target := before + int64(5+rand.IntN(40))
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("r%d-w%d-%d", round, w, i)
					if _, err := c.Apply(t.Context(), name, runNamed(name), metav1.ApplyOptions{FieldManager: "test"}); err != nil {
						return // killed
					}
					acknowledged.Store(name, true)
					if count.Add(1) >= target {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(30 * time.Second):
			t.Errorf("round %d: only %d writes in 30 s\n%s", round, count.Load()-before, p.stderr)
		}
		p.kill(t)
		wg.Wait()
	}
	p := start(t, state)
	missing(t, client(t, p), &acknowledged)
	t.Logf("%d kills, %d acknowledged writes, none lost", rounds, count.Load())
	p.stop(t)
}

func missing(t *testing.T, c dynamic.ResourceInterface, acknowledged *sync.Map) {
	t.Helper()
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[any]bool{}
	for _, o := range list.Items {
		kept[o.GetName()] = true
	}
	acknowledged.Range(func(name, _ any) bool {
		if !kept[name] {
			t.Errorf("lost %s", name)
		}
		return true
	})
}

// TestKillsWhileStartingDoNoHarm: whatever is half made is made again.
func TestKillsWhileStartingDoNoHarm(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		state := stateDir(t)
		for range 6 {
			p, ended := background(t, state)
			select {
			case <-time.After(time.Duration(rand.IntN(400)) * time.Millisecond):
				p.kill(t)
			case <-ended:
				t.Fatalf("round %d: it ended by itself:\n%s", round, p.stderr)
			}
			<-ended
		}
		p := start(t, state)
		if _, err := client(t, p).Apply(t.Context(), "r", runNamed("r"), applyAs); err != nil {
			t.Error(err)
		}
		p.stop(t)
	}
}

// TestRestartKeepsEverything: objects, their versions, tokens, the port, and
// with them every client's configuration.
func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	p := start(t, state)
	before, err := client(t, p).Apply(t.Context(), "r", runNamed("r"), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	config := p.config(t)
	p.stop(t)
	if text := p.stderr.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "level=WARN") {
		t.Errorf("a quiet life ends with\n%s", text)
	}
	p = start(t, state)
	if got := p.config(t); got.Host != config.Host || got.BearerToken != config.BearerToken || string(got.CAData) != string(config.CAData) {
		t.Errorf("the kubeconfig changed: %s, was %s", got.Host, config.Host)
	}
	after, err := client(t, p).Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("another object: %v, was %v", after.Object["metadata"], before.Object["metadata"])
	}
	if strings.Contains(p.stderr.String(), "first start") {
		t.Errorf("the second start takes itself for the first:\n%s", p.stderr)
	}
	p.stop(t)
}

// What requests say, where nothing else matters.
var (
	listOne = metav1.ListOptions{Limit: 1}
	getIt   = metav1.GetOptions{}
	applyAs = metav1.ApplyOptions{FieldManager: "test"}
)
