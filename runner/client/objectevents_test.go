package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestObjectEventsAreThoseOfTheObject(t *testing.T) {
	var path, selector string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path, selector = r.URL.Path, r.URL.Query().Get("fieldSelector")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [
			{"metadata": {"name": "a.1"}, "type": "Warning", "reason": "ToolError", "message": "bash \n", "count": 3, "source": {"component": "run-controller"},
			 "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:05:05Z", "eventTime": null},
			{"metadata": {"name": "a.2"}, "type": "Normal", "reason": "Accepted", "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "agentctl.dev/run-controller",
			 "eventTime": "2026-01-02T03:04:05.123456Z", "series": {"count": 4, "lastObservedTime": "2026-01-02T03:06:05.000000Z"}},
			{"metadata": {"name": "a.3", "creationTimestamp": "2026-01-02T03:04:05Z"}, "count": "many", "series": 7, "source": "x"}
		]}`)
	})
	o := Object{"kind": "Run", "metadata": map[string]any{"name": "a", "namespace": "web", "uid": "u,x=1"}}
	got, err := c.ObjectEvents(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if path != "/api/v1/namespaces/web/events" || selector != `involvedObject.name=a,involvedObject.kind=Run,involvedObject.uid=u\,x\=1` {
		t.Errorf("asked for %s %s", path, selector)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []ObjectEvent{
		{Type: "Warning", Reason: "ToolError", Message: "bash", Source: "run-controller", First: at, Last: at.Add(time.Minute), Count: 3},
		{Type: "Normal", Reason: "Accepted", Source: "agentctl.dev/run-controller", First: at.Add(123456 * time.Microsecond), Last: at.Add(2 * time.Minute), Count: 4},
		{First: at, Last: at, Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAServerWithoutEventsHasNone(t *testing.T) {
	run := Object{"kind": "Run", "metadata": map[string]any{"name": "a"}}
	c := serve(t, text(http.StatusNotFound, "404 page not found\n"))
	if events, err := c.ObjectEvents(t.Context(), run); events != nil || err != nil {
		t.Errorf("%v %v", events, err)
	}
	if _, _, err := c.List(t.Context(), ListOptions{Kind: KindEvent}); err == nil || !strings.Contains(err.Error(), "does not serve events") {
		t.Errorf("%v", err)
	}
	c = serve(t, status(http.StatusForbidden, "Forbidden", "not you", ""))
	if _, err := c.ObjectEvents(t.Context(), run); err == nil {
		t.Error("a server that refuses is as one that knows of none")
	}
	c = serve(t, text(http.StatusOK, `{"kind": "EventList", "items": []}`))
	if events, err := c.ObjectEvents(t.Context(), run); events == nil || len(events) != 0 || err != nil {
		t.Errorf("%v %v", events, err)
	}
}

// TestEventsAreListedLikeAKind: their list leaves out what each of them is.
func TestEventsAreListedLikeAKind(t *testing.T) {
	c := serve(t, text(200, `{"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": {"name": "a.1"}}]}`, "Content-Type", "application/json"))
	all, _, err := c.List(t.Context(), ListOptions{Kind: KindEvent, AllNamespaces: true})
	if err != nil || len(all) != 1 || all[0].Kind() != "Event" || all[0].Text("apiVersion") != "v1" || all[0].Ref().String() != "event/a.1" {
		t.Errorf("%v %v", all, err)
	}
}
