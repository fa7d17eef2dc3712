package apitest

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Column names a server in what differs between them.
type Column int

// The columns.
const (
	// Embedded is the server in agentd.
	Embedded Column = iota
	// Cluster is a kube-apiserver.
	Cluster
)

// difference is a request that the servers answer differently. No program of
// this project may depend on the answer.
type difference struct {
	name, method, path, body string
	header                   map[string]string
	want                     [2]int // by column
	reason                   string
}

const runsOf = "/apis/agentctl.dev/v1alpha1/namespaces/NS/runs"

var differences = []difference{
	{
		"Namespace", "GET", "/api/v1/namespaces/default", "", nil,
		[2]int{404, 200},
		"a namespace is just a name in the embedded server",
	},
	{
		"NamespaceThatNobodyMade", "POST", strings.Replace(runsOf, "NS", "nobody-made-it", 1),
		`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"generateName": "r-"}, "spec": {"agentRef": {"name": "a"}}}`, nil,
		[2]int{201, 404},
		"so there is none that could be missing",
	},
	{"Secrets", "GET", "/api/v1/namespaces/default/secrets", "", nil, [2]int{404, 200}, "secretKeyRef is refused where there are none"},
	{"Leases", "GET", "/apis/coordination.k8s.io/v1/leases", "", nil, [2]int{404, 200}, "the lock of the state folder stands where an operator has a lease"},
	{"Jobs", "GET", "/apis/batch/v1/jobs", "", nil, [2]int{404, 200}, "the controllers must not touch them where runs are lived in agentd"},
	{
		"AskingForRightsOfOthers", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "jane", "nonResourceAttributes": {"path": "/", "verb": "get"}}}`, nil,
		[2]int{404, 201},
		"an identity learns what it may do itself; the table of roles says the rest",
	},
}

// Differ tests the differences. Each line must hold for both servers.
func Differ(t *testing.T, column Column, s Server) {
	config := s.Config()
	apply(t, config)
	k := newClient(t, config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), d.method, config.Host+strings.Replace(d.path, "NS", k.namespace, 1), strings.NewReader(d.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			for name, value := range d.header {
				req.Header.Set(name, value)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != d.want[column] {
				t.Errorf("%s %s: %s, want %d: %s", d.method, d.path, resp.Status, d.want[column], d.reason)
			}
		})
	}
}
