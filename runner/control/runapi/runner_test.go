package runapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestARunnerNamesNoFilesOfTheServer(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Caller = func(context.Context) Caller { return Caller{Name: "ci", NoPaths: true} } })
	if err := w.Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{
		`{"name": "path", "workspace": {"source": {"path": "/etc"}}}`: http.StatusForbidden,
		`{"name": "empty", "workspace": {}}`:                          http.StatusForbidden,
		`{"name": "ref", "workspaceRef": {"name": "repo"}}`:           http.StatusCreated,
		`{"name": "none", "prompt": "x"}`:                             http.StatusCreated,
	} {
		resp, err := w.client.Post(w.http.URL+base+"agents/a/runs", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", body, resp.StatusCode, want)
		}
	}
}
