package embedded

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// happened is an event of a run in a namespace.
func happened(namespace, run, message string) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "agentctl.dev/v1alpha1", Kind: "Run", Namespace: namespace, Name: run, UID: "u-1"},
		Type:           corev1.EventTypeWarning, Reason: "ToolError", Message: message, Source: corev1.EventSource{Component: "agentctl-run-controller"},
	}
}

func core(t *testing.T, s *Server, change func(*rest.Config)) *kubernetes.Clientset {
	t.Helper()
	config := s.Loopback()
	if change != nil {
		change(config)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEventsAreThoseOfACluster reads them as kubectl describe and kubectl get do.
func TestEventsAreThoseOfACluster(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	s.Events().Record(happened("events", "r1", "first"))
	s.Events().Record(happened("events", "r2", "second"))
	for name, kind := range map[string]string{"JSON": "application/json", "protobuf": "application/vnd.kubernetes.protobuf,application/json"} {
		c := core(t, s, func(config *rest.Config) { config.AcceptContentTypes = kind }).CoreV1().Events("events")
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "r1", Namespace: "events"}, TypeMeta: metav1.TypeMeta{APIVersion: "agentctl.dev/v1alpha1", Kind: "Run"}}
		found, err := c.SearchWithContext(t.Context(), scheme.Scheme, o)
		if err != nil || len(found.Items) != 1 || found.Items[0].Message != "first" {
			t.Errorf("%s: search: %v %v", name, found, err)
			continue
		}
		one, err := c.Get(t.Context(), found.Items[0].Name, metav1.GetOptions{})
		if err != nil || one.Message != "first" || one.UID != found.Items[0].UID {
			t.Errorf("%s: get: %v %v", name, one, err)
		}
		if _, err := c.Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: get none: %v", name, err)
		}
		if _, err := c.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.prompt=x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: by a field that no event has: %v", name, err)
		}
	}
	c := newCaller(t, s)
	code, text := c.do("GET", "/api/v1/namespaces/events/events", token(t, s, "events-viewer", RoleViewer), nil, header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"))
	if code != http.StatusOK || !strings.Contains(text, `"run/r1","agentctl-run-controller","first"`) || !strings.Contains(text, `"name":"Last Seen"`) {
		t.Errorf("%d %s", code, text)
	}
}

// TestEventsAreDiscovered by clients of both ages, and described.
func TestEventsAreDiscovered(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	groups, all, err := core(t, s, nil).Discovery().ServerGroupsAndResources()
	if err != nil || len(groups) == 0 || groups[0].Name != "" {
		t.Fatalf("%v %v", groups, err)
	}
	var verbs []string
	for _, list := range all {
		for i := range list.APIResources {
			if r := &list.APIResources[i]; list.GroupVersion == "v1" && r.Kind == "Event" && r.Name == "events" && r.SingularName == "event" && r.Namespaced {
				verbs = r.Verbs
			}
		}
	}
	if diff := cmp.Diff([]string{"get", "list", "watch"}, verbs); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
	c, viewer := newCaller(t, s), token(t, s, "events-discovers", RoleViewer)
	for path, words := range map[string]string{
		"/api":               `"versions":["v1"]`,
		"/api/v1":            `"name":"events"`,
		"/openapi/v2":        `"io.k8s.api.core.v1.Event"`,
		"/openapi/v3/api/v1": `"io.k8s.api.core.v1.ObjectReference"`,
	} {
		if code, text := c.do("GET", path, viewer, nil, nil); code != http.StatusOK || !strings.Contains(text, words) {
			t.Errorf("%s: %d %.300s", path, code, text)
		}
	}
}

// TestNobodyWritesEvents: what the server says happened cannot be forged, not
// even by who may do everything.
func TestNobodyWritesEvents(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	s.Events().Record(happened("forged", "r1", "true"))
	list, err := core(t, s, nil).CoreV1().Events("forged").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	name := list.Items[0].Name
	bearers := map[string]string{"the process itself": s.loopback.BearerToken}
	for _, role := range Roles() {
		runs := []string(nil)
		if role == RoleWorker {
			runs = []string{"forged/r1"}
		}
		bearers[string(role)] = token(t, s, "forge-events-"+string(role), role, runs...)
	}
	c := newCaller(t, s)
	for who, bearer := range bearers {
		for _, way := range []struct{ method, path, kind string }{
			{"POST", "", "application/json"},
			{"PUT", "/" + name, "application/json"},
			{"PATCH", "/" + name, "application/merge-patch+json"},
			{"PATCH", "/" + name + "?fieldManager=x&force=true", "application/apply-patch+yaml"},
			{"DELETE", "/" + name, ""},
			{"DELETE", "", ""},
			{"POST", "/" + name + "/status", "application/json"},
		} {
			var body io.Reader
			if way.kind != "" {
				body = strings.NewReader(`{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "` + name + `", "namespace": "forged"}, "message": "false", "involvedObject": {"namespace": "forged"}}`)
			}
			code, text := c.do(way.method, "/api/v1/namespaces/forged/events"+way.path, bearer, body, header("Content-Type", way.kind))
			if code < 400 || code >= 500 {
				t.Errorf("%s: %s %s: %d %.200s", who, way.method, way.path, code, text)
			}
		}
	}
	list, err = core(t, s, nil).CoreV1().Events("forged").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Message != "true" {
		t.Errorf("the events are %v %v", list, err)
	}
}

// TestEventsAreWatched from the version of a list, while others list.
func TestEventsAreWatched(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := core(t, s, nil).CoreV1().Events("watched")
	list, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Events().Record(happened("watched", "r1", "first"))
	s.Events().Record(happened("elsewhere", "r1", "first"))
	s.Events().Record(happened("watched", "r1", "first"))
	if _, err := c.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []watch.EventType{watch.Added, watch.Modified} {
		select {
		case e := <-w.ResultChan():
			if o, ok := e.Object.(*corev1.Event); !ok || e.Type != want || int(o.Count) != i+1 || o.Namespace != "watched" {
				t.Errorf("change %d: %s %v", i, e.Type, e.Object)
			}
		case <-time.After(patient):
			t.Fatal("no change came")
		}
	}
}
