package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// TestDecideWaitsForTheApprovalThatIsAskedAgain: a run that continues in another process
// replaces its Approval, which is missing for a moment.
func TestDecideWaitsForTheApprovalThatIsAskedAgain(t *testing.T) {
	approval := func(binding string) string {
		return fmt.Sprintf(`{"kind":"Approval","metadata":{"name":"x-1","uid":"2","resourceVersion":"9"},"spec":{"binding":%q}}`, binding)
	}
	for name, x := range map[string]struct {
		lists   []string
		watches []string
		decided int
		fails   bool
	}{
		"asked again":      {lists: []string{list("5")}, watches: []string{`{"type":"ADDED","object":` + approval("sha256:a") + "}\n"}, decided: 2},
		"another question": {lists: []string{list("5", approval("sha256:b"))}, decided: 1, fails: true},
		"not asked again":  {lists: []string{list("5")}, decided: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, lists: x.lists, watches: x.watches}
				missing := func() (*http.Response, error) {
					return answer(404, `{"kind":"Status","reason":"NotFound","details":{"name":"x-1","kind":"approvals"}}`), nil
				}
				cl, err := New(Endpoint{Context: "x", Server: "https://example.invalid"})
				if err != nil {
					t.Fatal(err)
				}
				decided := 0
				cl.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					switch {
					case strings.HasSuffix(r.URL.Path, "/decision"):
						if decided++; decided == 1 {
							return missing()
						}
						return answer(200, approval("sha256:a")), nil
					case strings.HasSuffix(r.URL.Path, "/x-1"):
						return missing()
					}
					return s.RoundTrip(r)
				})
				_, err = cl.Decide(t.Context(), Ref{Name: "x-1"}, "sha256:a", Decision{Decision: v1alpha1.DecisionApproved})
				if (err != nil) != x.fails || decided != x.decided || err != nil && !Missing(err) {
					t.Errorf("%d decisions were requested: %v", decided, err)
				}
			})
		})
	}
}
