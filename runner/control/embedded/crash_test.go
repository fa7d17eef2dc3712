package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// kills is how often the server is killed: 50 times, which takes half a minute
// beside nothing else. A quick look does with a few, and the race detector with some more.
func kills() int {
	switch {
	case testing.Short():
		return 3
	case raceDetector:
		return 8
	}
	return 50
}

// TestAcknowledgedWritesSurviveKills kills the server while several clients
// create, change and delete objects, again and again. What it said yes to is
// there after each, and what it did not answer is done or not done.
func TestAcknowledgedWritesSurviveKills(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	writers := make([]*ledger, 4)
	for i := range writers {
		writers[i] = &ledger{name: fmt.Sprintf("w%d", i), random: rand.New(rand.NewPCG(uint64(i), 0)), objects: map[string]*entry{}} //nolint:gosec // chance of a test
	}
	var count atomic.Int64
	for round := range kills() {
		p := start(t, state)
		c := client(t, p)
		compare(t, c, writers)
		var wg sync.WaitGroup
		enough := make(chan struct{})
		var once sync.Once
		before := count.Load()
		target := before + int64(5+rand.IntN(60))
		for _, l := range writers {
			wg.Go(func() {
				for l.write(t, c) {
					if count.Add(1) >= target {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(patient):
			t.Errorf("round %d: only %d writes\n%s", round, count.Load()-before, p.stderr)
		}
		p.kill(t)
		wg.Wait()
	}
	p := start(t, state)
	compare(t, client(t, p), writers)
	unsure := 0
	for _, l := range writers {
		unsure += l.unsure
	}
	t.Logf("%d kills, %d acknowledged writes, none lost; %d were not answered", kills(), count.Load(), unsure)
	p.stop(t)
}

// ledger is what the server has confirmed to one client.
type ledger struct {
	name    string
	random  *rand.Rand
	objects map[string]*entry
	version int    // of the latest write
	seen    uint64 // the highest resource version that was acknowledged
	unsure  int
}

// entry is an object: the version of it that was acknowledged, and the one that
// was asked for and not answered; gone is the version of what is not there.
type entry struct {
	acknowledged, asked int
	open                bool
}

const gone = 0

// write makes, changes or deletes one of a few objects; false when there was no
// answer.
func (l *ledger) write(t *testing.T, c dynamic.ResourceInterface) bool {
	t.Helper()
	name := fmt.Sprintf("%s-%d", l.name, l.random.IntN(12))
	e := l.objects[name]
	if e == nil {
		e = &entry{}
		l.objects[name] = e
	}
	l.version++
	e.asked, e.open = l.version, true
	var err error
	if e.acknowledged != gone && l.random.IntN(4) == 0 {
		e.asked = gone
		err = c.Delete(t.Context(), name, metav1.DeleteOptions{})
	} else {
		o := runNamed(name)
		o.SetLabels(map[string]string{"version": strconv.Itoa(l.version)})
		if o, err = c.Apply(t.Context(), name, o, metav1.ApplyOptions{FieldManager: "test"}); err == nil {
			l.seen = max(l.seen, resourceVersion(t, o.GetResourceVersion()))
		}
	}
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code < 500 {
			t.Errorf("%s version %d after %d: %v", name, e.asked, e.acknowledged, err)
		}
		l.unsure++
		return false
	}
	e.acknowledged, e.open = e.asked, false
	return true
}

func resourceVersion(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// compare compares the stored objects with what each client knows, and
// continues from the stored ones.
func compare(t *testing.T, c dynamic.ResourceInterface, writers []*ledger) {
	t.Helper()
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]int{}
	for _, o := range list.Items {
		version, err := strconv.Atoi(o.GetLabels()["version"])
		if err != nil {
			t.Fatal(err)
		}
		kept[o.GetName()] = version
	}
	known := 0
	for _, l := range writers {
		if now := resourceVersion(t, list.GetResourceVersion()); now < l.seen {
			t.Errorf("the server is at %d, and has been at %d", now, l.seen)
		}
		for name, e := range l.objects {
			found, there := kept[name]
			if found != e.acknowledged && (!e.open || found != e.asked) {
				t.Errorf("%s is at version %d, want %d (or %d, which was not answered: %v)", name, found, e.acknowledged, e.asked, e.open)
			}
			if there {
				known++
			}
			e.acknowledged, e.open = found, false
		}
	}
	if known != len(kept) {
		t.Errorf("%d objects are there, and %d were made: %v", len(kept), known, kept)
	}
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
