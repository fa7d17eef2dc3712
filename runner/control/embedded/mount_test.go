package embedded

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// echoed is what the live handler of the shared server gets to see.
type echoed struct {
	Path, Query, Name string
	Role              Role
	Runs              []string
}

// echo returns the requests that reach a live handler. If it is asked to wait,
// it waits until its request ends, and returns the cause.
func echo(w http.ResponseWriter, r *http.Request) {
	id, _ := IdentityOf(r.Context())
	if r.URL.Query().Has("wait") {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(echoed{r.URL.Path, r.URL.RawQuery, id.Name, id.Role, id.Runs})
}

// TestLiveRequestsAreServedAsTheyAreJudged sends every form of a path, also
// those that two readers could understand differently.
func TestLiveRequestsAreServedAsTheyAreJudged(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	viewer := token(t, s, "mount-viewer", RoleViewer)
	user := token(t, s, "mount-user", RoleUser)
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/"
	for name, c := range map[string]struct {
		method, path, token string
		code                int
		want                string // path as served
	}{
		"the events of a run":             {"GET", base + "a/runs/b/events?from=3", viewer, 200, base + "a/runs/b/events"},
		"the short form":                  {"GET", "/ws/b?from=3", viewer, 200, base + "default/runs/b/events"},
		"the short form with a namespace": {"GET", "/ws/a/b", viewer, 200, base + "a/runs/b/events"},
		"a slash behind":                  {"GET", "/ws/a/b/", viewer, 403, ""},
		"a path escaped for no reason":    {"GET", base + "a/runs/%62/events", viewer, 200, base + "a/runs/b/events"},
		"a prompt":                        {"POST", base + "a/agents/b/runs", user, 200, base + "a/agents/b/runs"},
		"a prompt of a viewer":            {"POST", base + "a/agents/b/runs", viewer, 403, ""},
		"a cancel of a viewer":            {"POST", base + "a/runs/b/cancel", viewer, 403, ""},
		"a message of a viewer":           {"POST", base + "a/runs/b/messages", viewer, 403, ""},
		"a write by the short form":       {"POST", "/ws/a/b", viewer, 403, ""},
		"a decision of a user":            {"POST", base + "a/approvals/b/decision", user, 403, ""},
		"the short form of nothing":       {"GET", "/ws/", user, 403, ""},
		"no run":                          {"GET", "/ws/a/", user, 403, ""},
		"no namespace":                    {"GET", "/ws//b", user, 403, ""},
		"too much":                        {"GET", "/ws/a/b/c", user, 403, ""},
		"more behind the events":          {"GET", base + "a/runs/b/events/c", user, 404, ""},
		"events of all namespaces":        {"GET", "/apis/agentctl.dev/v1alpha1/runs/b/events", user, 404, ""},
		"another version":                 {"GET", "/apis/agentctl.dev/v1/namespaces/a/runs/b/events", user, 404, ""},
		"another group":                   {"GET", "/apis/apiextensions.k8s.io/v1/namespaces/a/runs/b/events", user, 403, ""},
		"by the old watch path":           {"GET", "/apis/agentctl.dev/v1alpha1/watch/namespaces/a/runs/b/events", user, 404, ""},
		"by the proxy path":               {"GET", "/apis/agentctl.dev/v1alpha1/proxy/namespaces/a/runs/b/events", user, 403, ""},
		"upwards in a name":               {"GET", base + "a/runs/..%2f..%2fetc/events", user, 403, ""},
		"dots as a name":                  {"GET", base + "a/runs/%2e%2e/events", user, 403, ""},
		"dots in the short form":          {"GET", "/ws/%2e%2e/b", user, 403, ""},
		"an encoded slash":                {"GET", base + "a/runs/b%2fevents", user, 200, base + "a/runs/b/events"},
		"a name that cannot be":           {"GET", base + "a/runs/B%20c/events", user, 404, ""},
		"a namespace that cannot be":      {"GET", base + "A/runs/b/events", user, 404, ""},
		"two slashes":                     {"GET", base + "a//runs/b/events", user, 404, ""},
		"no token":                        {"GET", "/ws/b", "", 401, ""},
		"a subresource nobody has":        {"GET", base + "a/runs/b/secrets", user, 404, ""},
		"that of another kind":            {"GET", base + "a/agents/b/events", user, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, text := newCaller(t, s).do(c.method, c.path, c.token, strings.NewReader("{}"), nil)
			if code != c.code {
				t.Fatalf("got %d, want %d: %.200s", code, c.code, text)
			}
			var got echoed
			if c.want == "" {
				if strings.Contains(text, `"Path"`) {
					t.Errorf("the handler got it: %s", text)
				}
			} else if err := json.Unmarshal([]byte(text), &got); err != nil || got.Path != c.want {
				t.Errorf("served %+v, want path %s (%v)", got, c.want, err)
			}
		})
	}
	_, text := newCaller(t, s).do("GET", "/ws/b?from=3", viewer, nil, nil)
	var got echoed
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(echoed{base + "default/runs/b/events", "from=3", "mount-viewer", RoleViewer, nil}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLiveRequestsBeforeTheirHandlerComeAgain(t *testing.T) {
	m := &mount{api: http.NotFoundHandler()}
	r := httptest.NewRequest("GET", "/", nil)
	r = r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{
		IsResourceRequest: true, APIPrefix: "apis", APIGroup: group, APIVersion: "v1alpha1", Verb: "get",
		Namespace: "a", Resource: "runs", Name: "b", Subresource: "events", Parts: []string{"runs", "b", "events"},
	}))
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"reason":"ServiceUnavailable"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// A client that starts the server waits for /readyz, and begins a run at once.
func TestAServerIsReadyWhenRunsAreServed(t *testing.T) {
	m := &mount{}
	if err := m.ready(nil); err == nil {
		t.Error("ready although requests to runs are refused")
	}
	h := http.Handler(http.HandlerFunc(echo))
	m.live.Store(&h)
	if err := m.ready(nil); err != nil {
		t.Error(err)
	}
}
