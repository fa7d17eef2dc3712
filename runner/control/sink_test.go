package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func someRun(name string) *v1alpha1.Run {
	return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1", ResourceVersion: "7"}}
}

// TestWhatWasWantedIsNormal checks all reasons: a new one is a Warning by default.
func TestWhatWasWantedIsNormal(t *testing.T) {
	for _, i := range reason.All() {
		want := corev1.EventTypeWarning
		if i.Reason == reason.Accepted || i.Reason == reason.Completed || i.Reason == reason.Cancelled {
			want = corev1.EventTypeNormal
		}
		if got := severity(i.Reason); got != want {
			t.Errorf("%s is %s, want %s", i.Reason, got, want)
		}
	}
}

func TestCoreSinkSaysWhatHappenedToWhat(t *testing.T) {
	var got []*corev1.Event
	var log bytes.Buffer
	sink := Sinks(CoreSink(func(e *corev1.Event) { got = append(got, e) }), LogSink(slog.New(slog.NewTextHandler(&log, nil))))
	sink.Record(t.Context(), someRun("r1"), reason.ToolError, "Failed: bash")
	want := []*corev1.Event{{
		InvolvedObject: corev1.ObjectReference{APIVersion: "agentctl.dev/v1alpha1", Kind: "Run", Namespace: "default", Name: "r1", UID: "uid-1", ResourceVersion: "7"},
		Type:           "Warning", Reason: "ToolError", Message: "Failed: bash",
		Source: corev1.EventSource{Component: "agentctl-run-controller"}, ReportingController: "agentctl.dev/run-controller",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(log.String(), "ToolError") {
		t.Errorf("the log has not been told: %q", log.String())
	}
}

// cluster is a client of a cluster that knows events alone.
func cluster(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := eventsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).Build()
}

func listed(t *testing.T, c client.Client) []eventsv1.Event {
	t.Helper()
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestClusterEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster(t, interceptor.Funcs{})
		// Two of them, as after a restart: the second finds what the first has written.
		for i := range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			s := NewClusterEvents(c, fmt.Sprintf("agentd-%d", i), slog.New(slog.DiscardHandler), time.Now)
			done := make(chan error, 1)
			go func() { done <- s.Start(ctx) }()
			s.Record(ctx, someRun("r1"), reason.Accepted, "Running")
			s.Record(ctx, someRun("r1"), reason.Accepted, "Running")
			s.Record(ctx, someRun(strings.Repeat("n", 253)), reason.ToolError, strings.Repeat("é", maxNote))
			synctest.Wait()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		all := listed(t, c)
		if len(all) != 2 {
			t.Fatalf("%d events: %v", len(all), all)
		}
		for i := range all {
			e := &all[i]
			count, want := int32(0), int32(4)
			if e.Regarding.Name != "r1" {
				want = 2
			}
			if e.Series != nil {
				count = e.Series.Count
			}
			if count != want || e.Series.LastObservedTime.IsZero() {
				t.Errorf("%s: %v, want %d", e.Regarding.Name, e.Series, want)
			}
			if problems := validation.IsDNS1123Subdomain(e.Name); problems != nil || len(e.Note) > maxNote || e.ReportingInstance != "agentd-0" || e.Action == "" {
				t.Errorf("no API server takes %+v: %v", e, problems)
			}
		}
	})
}

// TestClusterEventsDoNotBlock while the API server hangs: excess events are dropped,
// which is logged.
func TestClusterEventsDoNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		c := cluster(t, interceptor.Funcs{Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		s := NewClusterEvents(c, "agentd", slog.New(slog.NewTextHandler(&log, nil)), time.Now)
		done := make(chan error, 1)
		go func() { done <- s.Start(ctx) }()
		s.Record(ctx, someRun("first"), reason.Accepted, "")
		synctest.Wait() // it hangs
		for i := range eventsWaiting + 1 {
			s.Record(ctx, someRun("r1"), reason.Accepted, fmt.Sprint(i))
		}
		if n := strings.Count(log.String(), "dropped"); n != 1 {
			t.Errorf("%d were dropped: %.300s", n, log.String())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClusterEventsThatCannotBeWrittenAreLogged(t *testing.T) {
	refusal := errors.New("no space")
	for name, funcs := range map[string]interceptor.Funcs{
		"create": {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal }},
		"count": {Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refusal
		}},
		"read": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refusal
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			s := NewClusterEvents(cluster(t, funcs), "agentd", slog.New(slog.NewTextHandler(&log, nil)), time.Now)
			done := make(chan error, 1)
			go func() { done <- s.Start(ctx) }()
			s.Record(ctx, someRun("r1"), reason.Accepted, "")
			s.Record(ctx, someRun("r1"), reason.Accepted, "")
			synctest.Wait()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), "no space") {
				t.Errorf("%s: the log says %q", name, log.String())
			}
		})
	}
}
