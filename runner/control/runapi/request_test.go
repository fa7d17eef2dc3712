package runapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/runs"
)

// ask makes a request as JSON.
func (w *world) ask(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, base+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// agents makes an agent.
func (w *world) agent(name string) {
	w.t.Helper()
	a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := w.Create(context.Background(), a); err != nil {
		w.t.Fatal(err)
	}
}

func TestPromptMakesARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agent("a")
	rec := w.ask("POST", "agents/a/runs", `{"name": "r", "prompt": "do it", "labels": {"team": "x"}, "inputs": {"n": 1},
		"limits": {"maxSteps": 3}, "workspaceRef": {"name": "w"}, "ttlAfterFinished": "1h", "backoffLimit": 2}`)
	if rec.Code != http.StatusCreated {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	var answered v1alpha1.Run
	if err := json.Unmarshal(rec.Body.Bytes(), &answered); err != nil {
		t.Fatal(err)
	}
	made := &v1alpha1.Run{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "r"}, made); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.RunSpec{
		AgentRef: v1alpha1.Reference{Name: "a"}, Prompt: "do it", Inputs: made.Spec.Inputs, Limits: &v1alpha1.RunLimits{MaxSteps: 3},
		WorkspaceRef: &v1alpha1.Reference{Name: "w"}, TTLAfterFinished: &metav1.Duration{Duration: time.Hour}, BackoffLimit: 2,
	}
	if diff := cmp.Diff(want, made.Spec); diff != "" || made.Labels["team"] != "x" || string(made.Spec.Inputs.Raw) != `{"n":1}` {
		t.Errorf("labels %v, inputs %s (-want +got)\n%s", made.Labels, made.Spec.Inputs.Raw, diff)
	}
	if answered.Kind != "Run" || answered.APIVersion != "agentctl.dev/v1alpha1" || answered.Name != "r" {
		t.Errorf("answered %+v", answered)
	}
	rec = w.ask("POST", "agents/a/runs", `{}`)
	if err := json.Unmarshal(rec.Body.Bytes(), &answered); err != nil || rec.Code != http.StatusCreated || !strings.HasPrefix(answered.Name, "a-") {
		t.Errorf("without a name: %d %q %v", rec.Code, answered.Name, err)
	}
}

func TestCancelAsksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	for range 2 {
		rec := w.ask("POST", "runs/r/cancel", `{}`)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"cancel":true`) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
}

// TestMessagesAreStoredInTheInboxOfTheRun, with the name of their sender.
func TestMessagesAreStoredInTheInboxOfTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.run("r", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	if rec := w.ask("POST", "runs/r/messages", `{"text": "early"}`); rec.Code != http.StatusConflict {
		t.Errorf("to a run that has not begun: %d %s", rec.Code, rec.Body)
	}
	b := w.begin(run, 1)
	b.add(event.RunStarted{})
	in := inbox.New(w.server.o.RunID(run, 1), b.dir)
	if err := in.Open(); err != nil {
		t.Fatal(err)
	}
	rec := w.ask("POST", "runs/r/messages", `{"text": "also the tests"}`)
	var answered messageAnswer
	if err := json.Unmarshal(rec.Body.Bytes(), &answered); err != nil || rec.Code != http.StatusAccepted || answered.ID == "" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	all := in.Take(t.Context())
	if len(all) != 1 || all[0].ID != answered.ID || all[0].Text != "also the tests" || all[0].By != "jane" {
		t.Errorf("in the inbox: %+v", all)
	}
	b.add(finished(v1alpha1.PhaseSucceeded, 0)) // and its object does not say so yet
	if rec := w.ask("POST", "runs/r/messages", `{"text": "late"}`); rec.Code != http.StatusConflict {
		t.Errorf("to a run that has ended: %d %s", rec.Code, rec.Body)
	}
}

// TestRequestsThatAreRefused: each with the code and in the words of a
// Kubernetes API, and none with an effect.
func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agent("a")
	w.run("going", standing(v1alpha1.PhaseRunning, "Accepted", ""))
	w.run("over", standing(v1alpha1.PhaseFailed, "Internal", ""))
	large := `{"prompt": "` + strings.Repeat("x", maxPrompt) + `"}`
	for name, c := range map[string]struct {
		method, path, kind, body string
		code                     int
		reason                   metav1.StatusReason
	}{
		"a form":                       {"POST", "agents/a/runs", "application/x-www-form-urlencoded", "prompt=x", 415, "UnsupportedMediaType"},
		"plain text":                   {"POST", "agents/a/runs", "text/plain", `{"prompt": "x"}`, 415, "UnsupportedMediaType"},
		"a form with files":            {"POST", "runs/going/cancel", "multipart/form-data; boundary=x", "", 415, "UnsupportedMediaType"},
		"no type":                      {"POST", "runs/going/cancel", "", "", 415, "UnsupportedMediaType"},
		"no body":                      {"POST", "agents/a/runs", "application/json", "", 400, "BadRequest"},
		"no JSON":                      {"POST", "agents/a/runs", "application/json", "{{", 400, "BadRequest"},
		"no object":                    {"POST", "agents/a/runs", "application/json", `["x"]`, 400, "BadRequest"},
		"two objects":                  {"POST", "runs/going/cancel", "application/json", `{}{}`, 400, "BadRequest"},
		"deep JSON":                    {"POST", "agents/a/runs", "application/json", `{"inputs": ` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", 400, "BadRequest"},
		"an unknown field":             {"POST", "agents/a/runs", "application/json", `{"promt": "x"}`, 400, "BadRequest"},
		"a field in other letters":     {"POST", "agents/a/runs", "application/json", `{"Prompt": "x"}`, 400, "BadRequest"},
		"a field twice":                {"POST", "agents/a/runs", "application/json", `{"prompt": "x", "prompt": "y"}`, 400, "BadRequest"},
		"an unknown field deep inside": {"POST", "agents/a/runs", "application/json", `{"limits": {"steps": 1}}`, 400, "BadRequest"},
		"another agent":                {"POST", "agents/a/runs", "application/json", `{"agentRef": {"name": "b"}}`, 400, "BadRequest"},
		"an agent that is not there":   {"POST", "agents/b/runs", "application/json", `{}`, 404, "NotFound"},
		"a name that is taken":         {"POST", "agents/a/runs", "application/json", `{"name": "over"}`, 409, "AlreadyExists"},
		"a body too large":             {"POST", "agents/a/runs", "application/json", large, 413, "RequestEntityTooLarge"},
		"a cancel with a field":        {"POST", "runs/going/cancel", "application/json", `{"now": true}`, 400, "BadRequest"},
		"a cancel of nothing":          {"POST", "runs/none/cancel", "application/json", `{}`, 404, "NotFound"},
		"a cancel after the end":       {"POST", "runs/over/cancel", "application/json", `{}`, 409, "Conflict"},
		"a large cancel":               {"POST", "runs/going/cancel", "application/json", strings.Repeat(" ", maxBody) + "{}", 413, "RequestEntityTooLarge"},
		"a message to nobody":          {"POST", "runs/none/messages", "application/json", `{"text": "x"}`, 404, "NotFound"},
		"a message after the end":      {"POST", "runs/over/messages", "application/json", `{"text": "x"}`, 409, "Conflict"},
		"an empty message":             {"POST", "runs/going/messages", "application/json", `{"text": ""}`, 422, "Invalid"},
		"a long message":               {"POST", "runs/going/messages", "application/json", `{"text": "` + strings.Repeat("x", runs.MessageLimit+1) + `"}`, 422, "Invalid"},
		"a message as somebody":        {"POST", "runs/going/messages", "application/json", `{"text": "x", "by": "admin"}`, 400, "BadRequest"},
		"a message without a text":     {"POST", "runs/going/messages", "application/json", `{"text": null}`, 422, "Invalid"},
		"events posted":                {"POST", "runs/going/events", "application/json", `{}`, 405, "MethodNotAllowed"},
		"events asked for the head":    {"HEAD", "runs/going/events", "", "", 405, "MethodNotAllowed"},
		"a cancel that is read":        {"GET", "runs/going/cancel", "", "", 405, "MethodNotAllowed"},
		"a prompt that is put":         {"PUT", "agents/a/runs", "application/json", `{}`, 405, "MethodNotAllowed"},
		"events of nothing":            {"GET", "runs/none/events", "", "", 404, "NotFound"},
		"events from nowhere":          {"GET", "runs/going/events?from=-1", "", "", 400, "BadRequest"},
		"events from zero":             {"GET", "runs/going/events?from=0", "", "", 400, "BadRequest"},
		"events from far away":         {"GET", "runs/going/events?from=99999999999999999999", "", "", 400, "BadRequest"},
		"events from two places":       {"GET", "runs/going/events?from=1&from=2", "", "", 400, "BadRequest"},
		"events of no attempt":         {"GET", "runs/going/events?attempt=0", "", "", 400, "BadRequest"},
		"events of a later attempt":    {"GET", "runs/going/events?attempt=2", "", "", 404, "NotFound"},
		"events followed perhaps":      {"GET", "runs/going/events?follow=perhaps", "", "", 400, "BadRequest"},
		"events with a typing error":   {"GET", "runs/going/events?form=3", "", "", 400, "BadRequest"},
		"events with a broken query":   {"GET", "runs/going/events?%zz", "", "", 400, "BadRequest"},
		"another subresource":          {"GET", "runs/going/secrets", "", "", 404, "NotFound"},
		"another kind":                 {"POST", "models/a/runs", "application/json", `{}`, 404, "NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, base+c.path, strings.NewReader(c.body))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			rec := httptest.NewRecorder()
			w.server.ServeHTTP(rec, r)
			var status metav1.Status
			if err := json.Unmarshal(rec.Body.Bytes(), &status); err != nil || rec.Code != c.code || status.Reason != c.reason || int(status.Code) != c.code || status.Kind != "Status" || status.Message == "" {
				t.Errorf("%v: %d %.300s", err, rec.Code, rec.Body)
			}
		})
	}
	for accept, want := range map[string]int{"application/json": 406, "text/html, application/json;q=0.9": 406, "text/event-stream": 200, "text/html, */*;q=0.1": 200, "": 200} {
		r := httptest.NewRequest("GET", base+"runs/over/events", nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		if w.server.ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("Accept: %q got %d", accept, rec.Code)
		}
	}
	r := httptest.NewRequest("GET", base+"runs/over/events", nil)
	r.Header.Set("Last-Event-ID", "9223372036854775807")
	rec := httptest.NewRecorder()
	if w.server.ServeHTTP(rec, r); rec.Code != 400 {
		t.Errorf("Last-Event-ID: got %d", rec.Code)
	}
	var runs v1alpha1.RunList
	if err := w.List(t.Context(), &runs); err != nil || len(runs.Items) != 2 || runs.Items[0].Spec.Cancel || runs.Items[1].Spec.Cancel {
		t.Errorf("they had an effect: %+v, %v", runs.Items, err)
	}
}

// TestSlowBodiesAreCutOff: a body that trickles in holds a connection for a
// short time only.
func TestSlowBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.bodyPatience = 50 * time.Millisecond })
	w.agent("a")
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer := slowly(t, conn, base+"agents/a/runs", ""); !strings.Contains(answer, " 408 ") || !strings.Contains(answer, "did not arrive within 50ms") {
		t.Errorf("%q", answer)
	}
}

// slowly sends the beginning of a body, and returns what comes until the server
// closes the connection.
func slowly(tb testing.TB, conn net.Conn, path, token string) string {
	tb.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		tb.Fatal(err)
	}
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"prompt\": \"",
		path, conn.RemoteAddr(), token)
	if err != nil {
		tb.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		tb.Errorf("the connection is kept after %q", answer)
	}
	return string(answer)
}

func FuzzWants(f *testing.F) {
	for _, q := range []string{"", "from=3&follow=false&attempt=2", "from=", "from=%31", "follow", ";", "from=1;attempt=2"} {
		f.Add(q, "")
		f.Add(q, "7")
	}
	f.Fuzz(func(t *testing.T, query, last string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		r.Header.Set("Last-Event-ID", last)
		w, err := wants(r)
		if err == nil && (w.from < 1 || w.attempt < 0) {
			t.Errorf("%q, %q: %+v", query, last, w)
		}
	})
}
