package embedded

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAnIdentityLearnsWhoItIsAndWhatItMayDo(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := newCaller(t, s)
	viewer, worker := token(t, s, "review-viewer", RoleViewer), token(t, s, "review-worker", RoleWorker, "default/one")
	const access, who, list = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	may := func(verb, resource, name string) string {
		return `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "` + verb +
			`", "group": "agentctl.dev", "resource": "` + resource + `", "namespace": "default", "name": "` + name + `"}}}`
	}
	for name, c2 := range map[string]struct {
		path, token, body string
		code              int
		want              string
	}{
		"a viewer reads":         {access, viewer, may("get", "runs", ""), 201, `"allowed":true`},
		"a viewer writes":        {access, viewer, may("create", "runs", ""), 201, `"allowed":false,"denied":true,"reason":"role viewer may not do this"`},
		"a worker reads its run": {access, worker, may("get", "runs", "one"), 201, `"allowed":true`},
		"a worker reads others":  {access, worker, may("get", "runs", "two"), 201, `"allowed":false`},
		"a path":                 {access, viewer, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}}`, 201, `"allowed":true`},
		"about nothing":          {access, viewer, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}`, 400, "exactly one"},
		"who am I":               {who, viewer, `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`, 201, `"username":"review-viewer"`},
		"which rules":            {list, viewer, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}`, 201, `"apiGroups":["agentctl.dev"],"resources":["*","*/*"]`},
		"noise":                  {access, viewer, "{{", 400, "read the review"},
		"another review":         {access, viewer, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {}}`, 400, "not a review of the caller"},
		"of others":              {"/apis/authorization.k8s.io/v1/subjectaccessreviews", viewer, "{}", 403, "role viewer may not do this"},
		"without a token":        {who, "", "{}", 401, "Unauthorized"},
	} {
		code, text := c.do("POST", c2.path, c2.token, strings.NewReader(c2.body), nil)
		if code != c2.code || !strings.Contains(text, c2.want) {
			t.Errorf("%s: got %d %s", name, code, text)
		}
	}
}

func TestMetricsAndTheVersionAreServed(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := newCaller(t, s)
	ours := prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentctl_exposed", Help: "A test."})
	forget, err := s.Expose(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		forget()
		if _, text := c.do("GET", "/metrics", token(t, s, "metrics-after", RoleViewer), nil, nil); strings.Contains(text, "agentctl_exposed") {
			t.Error("it is still there")
		}
	}()
	if _, err := s.Expose(ours); err == nil {
		t.Error("metrics were added twice")
	}
	if code, text := c.do("GET", "/metrics", token(t, s, "metrics-viewer", RoleViewer), nil, nil); code != 200 || !strings.Contains(text, "apiserver_request_total") || !strings.Contains(text, "\nagentctl_exposed 0\n") {
		t.Errorf("got %d, %d bytes", code, len(text))
	}
	if code, _ := c.do("GET", "/metrics", token(t, s, "metrics-worker", RoleWorker, "default/one"), nil, nil); code != 403 {
		t.Errorf("a worker got %d", code)
	}
	if code, text := c.do("GET", "/version", token(t, s, "version-viewer", RoleViewer), nil, nil); code != 200 || !strings.Contains(text, "+agentd.test-1.0") {
		t.Errorf("got %d %s", code, text)
	}
}
