package runapi

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/journal"
)

// Objects of an agent that echoes twice, and of one whose call waits for an approval that
// nobody gives.
const (
	model = `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Model", "metadata": {"name": "script"}, "spec": {"provider": "scripted", "scripted": {"steps": [
		{"say": "one", "calls": [{"tool": "echo", "args": {"text": "a"}}]}, {"say": "two", "calls": [{"tool": "echo", "args": {"text": "b"}}]}, {"say": "done"}]}}}`
	tool = `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Tool", "metadata": {"name": "echo"}, "spec": {"parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
		"risk": "R0", "retry": "Idempotent", "isolation": {"minimum": "None"}, "source": {"exec": {"command": ["cat"]}}}}`
	policy = `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Policy", "metadata": {"name": %q}, "spec": {"rules": [{"name": "echo", "match": {"tools": ["echo"]}, "action": %q}]}}`
	agent  = `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Agent", "metadata": {"name": %q}, "spec": {"modelRef": {"name": "script"}, "tools": [{"name": "echo"}],
		"policyRefs": [{"name": %q}], "approvals": {"onAsk": "Wait", "timeout": "10m"}}}`
)

// settle makes the agents in a namespace of the test's own.
func (p *plane) settle(t testing.TB, name string) (namespace string) {
	t.Helper()
	namespace = unique(name)
	p.make(t, namespace, "models", model)
	p.make(t, namespace, "tools", tool)
	for agentName, action := range map[string]string{"worker": "allow", "asker": "ask"} {
		p.make(t, namespace, "policies", fmt.Sprintf(policy, agentName, action))
		p.make(t, namespace, "agents", fmt.Sprintf(agent, agentName, agentName))
	}
	return namespace
}

// sse opens a stream of the shared server.
func (p *plane) sse(t testing.TB, path, token string) reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := p.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s %s", path, resp.Status, text)
	}
	return newSSEReader(t, resp.Body)
}

// ws opens a WebSocket of the shared server.
func (p *plane) ws(t testing.TB, path string, o *websocket.DialOptions) (reader, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	o.HTTPClient = p.http
	c, resp, err := websocket.Dial(ctx, "wss"+strings.TrimPrefix(p.server.URL(), "https")+path, o) //nolint:bodyclose // the connection is it
	if err != nil {
		if resp == nil {
			t.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	if len(o.Subprotocols) > 0 && c.Subprotocol() != subprotocol {
		t.Errorf("subprotocol %q was agreed on", c.Subprotocol())
	}
	return &wsReader{ctx: ctx, t: t, c: c}, resp.StatusCode
}

// TestRunIsExecutedAndStreamed has agentd's parts execute a run, and reads it by every protocol
// and from every event on.
func TestRunIsExecutedAndStreamed(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.settle(t, "told")
	user, viewer := p.token(t, "told-user", embedded.RoleUser), p.token(t, "told-viewer", embedded.RoleViewer)
	code, text := p.ask(t, "POST", apis(ns)+"agents/worker/runs", user, `{"name": "r", "prompt": "go"}`, nil)
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	var run v1alpha1.Run
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatal(err)
	}
	got := all(t, p.sse(t, apis(ns)+"runs/r/events", viewer))
	if end := got.last(); end.Type != recordEnd || end.Phase != v1alpha1.PhaseSucceeded || end.Reason != "Completed" || *end.ExitCode != 0 {
		t.Fatalf("%+v", end)
	}
	// A client that has read the end finds it in the object.
	if _, text := p.ask(t, "GET", apis(ns)+"runs/r", viewer, "", nil); !strings.Contains(text, `"phase":"Succeeded"`) {
		t.Errorf("the object says %s", text)
	}
	lines := filesOf(t, journal.Dir(p.dir, control.AttemptID(&run, 1)))
	if diff := cmp.Diff(lines, got.events); diff != "" || len(lines) < 20 {
		t.Fatalf("%d events (-journal +stream)\n%s", len(lines), diff)
	}
	secret := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(viewer))
	for from := 1; from <= len(lines)+1; from++ {
		query := fmt.Sprintf("?from=%d", from)
		ws := func(path string, o websocket.DialOptions) reader {
			r, code := p.ws(t, path+query, &o)
			if r == nil {
				t.Fatalf("%s: %d", path, code)
			}
			return r
		}
		bearer := http.Header{"Authorization": {"Bearer " + viewer}}
		for how, r := range map[string]reader{
			"SSE":                  p.sse(t, "/ws/"+ns+"/r"+query, viewer),
			"WebSocket":            ws(apis(ns)+"runs/r/events", websocket.DialOptions{HTTPHeader: bearer}),
			"WebSocket of a page":  ws("/ws/"+ns+"/r", websocket.DialOptions{Subprotocols: []string{secret, subprotocol}, HTTPHeader: http.Header{"Origin": {p.server.URL()}}}),
			"WebSocket, all named": ws("/ws/"+ns+"/r", websocket.DialOptions{Subprotocols: []string{subprotocol}, HTTPHeader: bearer}),
		} {
			got := all(t, r)
			if diff := cmp.Diff(append([]string(nil), lines[from-1:]...), got.events); diff != "" || got.last().Type != recordEnd {
				t.Errorf("%s from %d, ends with %+v (-journal +stream)\n%s", how, from, got.last(), diff)
			}
		}
	}
}

func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

// TestRunThatWaitsIsToldAndCancelled: a stream is open while the run waits; a
// message and a cancel reach it.
func TestRunThatWaitsIsToldAndCancelled(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.settle(t, "waits")
	user := p.token(t, "waits-user", embedded.RoleUser)
	if code, text := p.ask(t, "POST", apis(ns)+"agents/asker/runs", user, `{"name": "r"}`, nil); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	r, got := p.sse(t, "/ws/"+ns+"/r", user), &received{}
	until(t, r, got, event.TypeApprovalRequested)
	if code, text := p.ask(t, "POST", apis(ns)+"runs/r/messages", user, `{"text": "never mind"}`, nil); code != http.StatusAccepted {
		t.Errorf("%d %s", code, text)
	}
	for range 2 {
		if code, text := p.ask(t, "POST", apis(ns)+"runs/r/cancel", user, `{}`, nil); code != http.StatusOK && code != http.StatusConflict {
			t.Errorf("%d %s", code, text)
		}
	}
	rest := all(t, r)
	if end := rest.last(); end.Type != recordEnd || end.Phase != v1alpha1.PhaseCancelled || *end.ExitCode == 0 {
		t.Errorf("%+v", end)
	}
	if code, text := p.ask(t, "POST", apis(ns)+"runs/r/cancel", user, `{}`, nil); code != http.StatusConflict {
		t.Errorf("after its end: %d %s", code, text)
	}
}

// TestHostileRequestsForRunsAreRefused sends requests that a page, a stranger, or an
// identity with another role can send to the addresses of this package.
func TestHostileRequestsForRunsAreRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.settle(t, "hostile")
	user, viewer := p.token(t, "h-user", embedded.RoleUser), p.token(t, "h-viewer", embedded.RoleViewer)
	worker := p.token(t, "h-worker", embedded.RoleWorker, ns+"/own")
	old := p.token(t, "h-old", embedded.RoleUser)
	if err := p.server.Tokens().Revoke(t.Context(), p.who(t, old)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r", "own"} {
		p.make(t, ns, "runs", fmt.Sprintf(`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": %q}, "spec": {"agentRef": {"name": "nobody"}}}`, name))
	}
	a := apis(ns)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	upgrade := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", name: value} {
				r.Header.Set(k, v)
			}
		}
	}
	form := set("Content-Type", "application/x-www-form-urlencoded")
	for name, c := range map[string]struct {
		method, path, token, body string
		change                    func(*http.Request)
		code                      int
	}{
		"no token":                            {"POST", a + "agents/worker/runs", "", `{}`, nil, 401},
		"no token, events":                    {"GET", a + "runs/r/events", "", "", nil, 401},
		"no token, WebSocket":                 {"GET", "/ws/" + ns + "/r", "", "", upgrade("X", "x"), 401},
		"a wrong token":                       {"POST", a + "runs/r/cancel", "agentd_x", `{}`, nil, 401},
		"a token that was revoked":            {"POST", a + "runs/r/cancel", old, `{}`, nil, 401},
		"a token in the address":              {"GET", "/ws/" + ns + "/r?token=" + user, "", "", nil, 401},
		"a wrong token as a subprotocol":      {"GET", "/ws/" + ns + "/r", "", "", upgrade("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eA, "+subprotocol), 401},
		"a subprotocol without an upgrade":    {"GET", "/ws/" + ns + "/r", "", "", set("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+base64.RawURLEncoding.EncodeToString([]byte(user))+", "+subprotocol), 401},
		"another host":                        {"GET", "/ws/" + ns + "/r", user, "", func(r *http.Request) { r.Host = "evil.example" }, 403},
		"another origin":                      {"POST", a + "agents/worker/runs", user, `{}`, set("Origin", "https://evil.example"), 403},
		"the null origin":                     {"POST", a + "runs/r/cancel", user, `{}`, set("Origin", "null"), 403},
		"a fetch across sites":                {"GET", a + "runs/r/events", user, "", set("Sec-Fetch-Site", "cross-site"), 403},
		"a WebSocket of another origin":       {"GET", "/ws/" + ns + "/r", user, "", upgrade("Origin", "https://evil.example"), 403},
		"a WebSocket of the null origin":      {"GET", "/ws/" + ns + "/r", user, "", upgrade("Origin", "null"), 403},
		"a WebSocket of a name for localhost": {"GET", "/ws/" + ns + "/r", user, "", upgrade("Origin", "https://localhost:1"), 403},
		"a WebSocket without TLS's origin":    {"GET", "/ws/" + ns + "/r", user, "", upgrade("Origin", "http"+strings.TrimPrefix(p.server.URL(), "https")), 403},
		"a simple form":                       {"POST", a + "agents/worker/runs", user, "prompt=x", form, 415},
		"a simple form to cancel":             {"POST", a + "runs/r/cancel", user, "", form, 415},
		"a form that looks like JSON":         {"POST", a + "runs/r/cancel", user, `{}`, set("Content-Type", "text/plain"), 415},
		"upwards by the name":                 {"GET", a + "runs/..%2f..%2f..%2fcontrol%2fkubeconfig/events", user, "", nil, 403},
		"upwards by dots":                     {"GET", a + "runs/%2e%2e/events", user, "", nil, 403},
		"upwards in the short form":           {"GET", "/ws/%2e%2e/%2e%2e", user, "", nil, 403},
		"upwards in the namespace":            {"GET", "/ws/..%2f..%2fcontrol/r", user, "", nil, 403},
		"a zero in the name":                  {"GET", a + "runs/r%00/events", user, "", nil, 404},
		"a body too large":                    {"POST", a + "agents/worker/runs", user, strings.Repeat(" ", 4<<20), nil, 413},
		"a cancel too large":                  {"POST", a + "runs/r/cancel", user, strings.Repeat(" ", 2<<20), nil, 413},
		"an unknown field":                    {"POST", a + "agents/worker/runs", user, `{"serviceAccount": "admin"}`, nil, 400},
		"a status from outside":               {"POST", a + "agents/worker/runs", user, `{"status": {"phase": "Succeeded"}}`, nil, 400},
		"a viewer who prompts":                {"POST", a + "agents/worker/runs", viewer, `{}`, nil, 403},
		"a viewer who cancels":                {"POST", a + "runs/r/cancel", viewer, `{}`, nil, 403},
		"a viewer who writes":                 {"POST", a + "runs/r/messages", viewer, `{"text": "x"}`, nil, 403},
		"a user who decides":                  {"POST", a + "approvals/x/decision", user, `{"decision": "approved"}`, nil, 403},
		"a worker that prompts":               {"POST", a + "agents/worker/runs", worker, `{}`, nil, 403},
		"a worker that cancels its own":       {"POST", a + "runs/own/cancel", worker, `{}`, nil, 403},
		"a worker that cancels another":       {"POST", a + "runs/r/cancel", worker, `{}`, nil, 403},
		"a worker that reads another":         {"GET", a + "runs/r/events", worker, "", nil, 403},
		"a worker that writes to itself":      {"POST", a + "runs/own/messages", worker, `{"text": "x"}`, nil, 403},
		"a delete":                            {"DELETE", a + "runs/r/events", user, "", nil, 403},
		"a delete of an admin":                {"DELETE", a + "runs/r/events", p.admin, "", nil, 405},
		"a patch of an admin":                 {"PATCH", a + "runs/r/cancel", p.admin, `{}`, nil, 405},
		"a method that is none":               {"BREW", a + "runs/r/cancel", p.admin, `{}`, nil, 403},
		"impersonation":                       {"POST", a + "runs/r/cancel", viewer, `{}`, set("Impersonate-User", "the-admin"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code, text := p.ask(t, c.method, c.path, c.token, c.body, c.change); code != c.code {
				t.Errorf("got %d, want %d: %.200s", code, c.code, text)
			}
		})
	}
	t.Cleanup(func() {
		resp, err := p.get(a + "runs")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(resp, `"kind":"Run"`) != 2 || strings.Contains(resp, `"cancel":true`) {
			t.Errorf("one of them had an effect: %s", resp)
		}
	})
}

// get is a read for the end of a test, when its context is over.
func (p *plane) get(path string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, p.server.URL()+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+p.admin)
	resp, err := p.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// TestSlowBodiesAreCutOffBehindTheServer: no handler in between hides the connection from
// the time-out.
func TestSlowBodiesAreCutOffBehindTheServer(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.settle(t, "slow")
	conn, err := tls.Dial("tcp", strings.TrimPrefix(p.server.URL(), "https://"), p.http.Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The request ends with what it reads from, and the API server may give up on
	// both before there is an answer.
	if answer := slowly(t, conn, apis(ns)+"agents/worker/runs", p.admin); answer != "" && !strings.Contains(answer, " 408 ") && !strings.Contains(answer, " 504 ") {
		t.Errorf("%q", answer)
	}
}

// TestStreamsAreNoRequestsOfAServerAtWork: many are open while it works on others,
// and the audit log has what was asked, and by whom.
func TestStreamsAreNoRequestsOfAServerAtWork(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := unique("open")
	p.make(t, ns, "runs", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "r"}, "spec": {"agentRef": {"name": "nobody"}}}`)
	for i := range 5 {
		viewer := p.token(t, fmt.Sprintf("open-%d", i), embedded.RoleViewer)
		for range maxEach {
			r, got := p.sse(t, "/ws/"+ns+"/r", viewer), &received{}
			until(t, r, got, recordWaiting)
		}
	}
	if code, text := p.ask(t, "POST", apis(ns)+"runs/r/cancel", p.admin, `{}`, nil); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "control", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(log)) {
		var r embedded.AuditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		found = found || r.User == "the-admin" && r.Verb == "create" && r.Resource == "runs" && r.Subresource == "cancel" && r.Namespace == ns && r.Name == "r" && r.Code == 200
	}
	if !found {
		t.Errorf("the audit log does not have the cancel:\n%s", log)
	}
}
