package embedded

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"agentctl.dev/agentctl/api/crds"
)

// may is the whole table by hand: role, then resource, then the verbs that are
// let through. It is not made from grants, which it holds to account.
var may = map[Role]map[string]string{
	RoleViewer: {
		"agents": "r", "models": "r", "policies": "r", "runs": "r", "skills": "r", "tools": "r", "workspaces": "r", "tests": "r", "approvals": "r",
		"agents/status": "r", "models/status": "r", "policies/status": "r", "runs/status": "r", "skills/status": "r", "tools/status": "r", "workspaces/status": "r", "tests/status": "r", "approvals/status": "r", "approvals/decision": "r",
		"runs/events": "r", "runs/messages": "r", "runs/cancel": "r", "agents/runs": "r", "events": "r",
	},
	RoleUser: {
		"agents": "rw", "models": "rw", "policies": "rw", "runs": "rw", "skills": "rw", "tools": "rw", "workspaces": "rw", "tests": "rw", "approvals": "r",
		"agents/status": "r", "models/status": "r", "policies/status": "r", "runs/status": "r", "skills/status": "r", "tools/status": "r", "workspaces/status": "r", "tests/status": "r", "approvals/status": "r", "approvals/decision": "r",
		"runs/events": "r", "runs/messages": "r create", "runs/cancel": "r create", "agents/runs": "r create", "events": "r",
	},
	RoleRunner: {"agents": "r", "runs": "r", "runs/status": "r", "runs/events": "r", "agents/runs": "create", "events": "r"},
	RoleApprover: {
		"agents": "rw", "models": "rw", "policies": "rw", "runs": "rw", "skills": "rw", "tools": "rw", "workspaces": "rw", "tests": "rw", "approvals": "r",
		"agents/status": "r", "models/status": "r", "policies/status": "r", "runs/status": "r", "skills/status": "r", "tools/status": "r", "workspaces/status": "r", "tests/status": "r", "approvals/status": "r", "approvals/decision": "r create",
		"runs/events": "r", "runs/messages": "r create", "runs/cancel": "r create", "agents/runs": "r create", "events": "r",
	},
	RoleController: {
		"agents": "rw", "models": "rw", "policies": "rw", "runs": "rw", "skills": "rw", "tools": "rw", "workspaces": "rw", "tests": "rw", "approvals": "r",
		"agents/status": "rw", "models/status": "rw", "policies/status": "rw", "runs/status": "rw", "skills/status": "rw", "tools/status": "rw", "workspaces/status": "rw", "tests/status": "rw", "approvals/status": "r", "approvals/decision": "r", "customresourcedefinitions": "r",
		"runs/events": "rw", "runs/messages": "rw", "runs/cancel": "rw", "agents/runs": "rw", "events": "r",
	},
	RoleAdmin: {
		"agents": "rw", "models": "rw", "policies": "rw", "runs": "rw", "skills": "rw", "tools": "rw", "workspaces": "rw", "tests": "rw", "approvals": "r delete deletecollection",
		"agents/status": "rw", "models/status": "rw", "policies/status": "rw", "runs/status": "rw", "skills/status": "rw", "tools/status": "rw", "workspaces/status": "rw", "tests/status": "rw", "approvals/status": "r", "approvals/decision": "r create",
		"customresourcedefinitions": "rw", "customresourcedefinitions/status": "rw",
		"runs/events": "rw", "runs/messages": "rw", "runs/cancel": "rw", "agents/runs": "rw", "events": "r",
	},
	RoleWorker: {},
}

// judged are the resources of the table, with their group.
var judged = map[string]string{
	"agents": group, "models": group, "policies": group, "runs": group, "skills": group, "tools": group, "workspaces": group, "tests": group, "approvals": group,
	"agents/status": group, "models/status": group, "policies/status": group, "runs/status": group, "skills/status": group,
	"tools/status": group, "workspaces/status": group, "tests/status": group, "approvals/status": group, "approvals/decision": group,
	"runs/events": group, "runs/messages": group, "runs/cancel": group, "agents/runs": group,
	"customresourcedefinitions": crdGroup, "customresourcedefinitions/status": crdGroup,
	"events": "", "secrets": "", "agents@core": "", "deployments": "apps", "clusterroles": "rbac.authorization.k8s.io", "subjectaccessreviews": "authorization.k8s.io",
}

func allowed(role Role, resource, verb string) bool {
	for word := range strings.FieldsSeq(may[role][resource]) {
		switch word {
		case "r":
			word = "get list watch"
		case "rw":
			word = "get list watch create update patch delete deletecollection"
		}
		if slices.Contains(strings.Fields(word), verb) {
			return true
		}
	}
	return false
}

// TestEveryKindStandsInTheTable: what is served and not judged may be open.
func TestEveryKindStandsInTheTable(t *testing.T) {
	t.Parallel()
	for _, kind := range crds.Kinds() {
		k, ok := crds.Kind(kind)
		if !ok {
			t.Fatalf("kind %s has no definition", kind)
		}
		for _, resource := range []string{k.Plural, k.Plural + "/status"} {
			if judged[resource] != group {
				t.Errorf("%s is not judged", resource)
			}
		}
	}
}

// TestRolesMayDoWhatTheTableSays asks the server itself, as each role, each verb
// on each resource.
func TestRolesMayDoWhatTheTableSays(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for _, role := range Roles() {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			runs := []string(nil)
			if role == RoleWorker {
				runs = []string{"default/own"}
			}
			c, bearer := newCaller(t, s), token(t, s, "table-"+string(role), role, runs...)
			for resource, g := range judged {
				if strings.Contains(resource, "@") {
					continue // no such path
				}
				for _, verb := range allVerbs {
					method, path, body := requestFor(g, resource, verb)
					if method == "" {
						continue
					}
					code, text := c.do(method, path, bearer, body, nil)
					if got, want := code != http.StatusForbidden, allowed(role, resource, verb); got != want || code == http.StatusUnauthorized {
						t.Errorf("%s %s: let through %v, want %v (%d %.120s)", verb, resource, got, want, code, text)
					}
				}
			}
		})
	}
}

// requestFor makes a request that changes nothing where it is let through.
func requestFor(g, resource, verb string) (method, path string, body io.Reader) {
	kind, sub, isSub := strings.Cut(resource, "/")
	base := "/apis/" + g + "/v1"
	switch g {
	case "":
		base = "/api/v1"
	case group:
		base += "alpha1"
	}
	if g != crdGroup {
		base += "/namespaces/role-table"
	}
	base += "/" + kind
	object := base + "/none." + group
	if isSub {
		object += "/" + sub
		if verb == "list" || verb == "watch" || verb == "deletecollection" {
			return "", "", nil // a subresource has no collection
		}
	}
	empty := strings.NewReader("{}")
	switch verb {
	case "get":
		return "GET", object, nil
	case "list":
		return "GET", base + "?limit=1", nil
	case "watch":
		return "GET", base + "?watch=1&resourceVersion=none", nil
	case "create":
		if isSub {
			return "POST", object, empty
		}
		return "POST", base, empty
	case "update":
		return "PUT", object, empty
	case "patch":
		return "PATCH", object, empty
	case "delete":
		return "DELETE", object, nil
	default:
		return "DELETE", base + "?labelSelector=role-table%3Dnone", nil
	}
}

// TestAuthorizerRefusesWhatNobodySpells continues where HTTP cannot: verbs and
// users that no request has.
func TestAuthorizerRefusesWhatNobodySpells(t *testing.T) {
	a := newAuthorizer()
	for _, role := range Roles() {
		u := Identity{Name: "x", Role: role}.user()
		for resource, g := range judged {
			kind, sub, _ := strings.Cut(strings.TrimSuffix(resource, "@core"), "/")
			for _, verb := range append([]string{"impersonate", "bind", "escalate", "proxy", "use", "*", ""}, allVerbs...) {
				got, _, err := a.Authorize(t.Context(), authorizer.AttributesRecord{User: u, Verb: verb, APIGroup: g, APIVersion: "v1", Resource: kind, Subresource: sub, Name: "x", Namespace: "default", ResourceRequest: true})
				if want := allowed(role, resource, verb); err != nil || (got == authorizer.DecisionAllow) != want {
					t.Errorf("%s: %s %s/%s: decision %v, want allowed %v", role, verb, g, resource, got, want)
				}
			}
		}
	}
	for name, u := range map[string]user.Info{
		"nobody":               nil,
		"anonymous":            &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		"authenticated only":   &user.DefaultInfo{Name: "x", Groups: []string{user.AllAuthenticated}},
		"a role nobody knows":  &user.DefaultInfo{Name: "x", Groups: []string{rolePrefix + "root"}},
		"a name like a role":   &user.DefaultInfo{Name: rolePrefix + "admin"},
		"a role with a suffix": &user.DefaultInfo{Name: "x", Groups: []string{rolePrefix + "admin "}},
	} {
		for _, r := range []authorizer.AttributesRecord{
			{User: u, Verb: "r", APIGroup: group, Resource: "runs", Name: "x", ResourceRequest: true},
			{User: u, Verb: "r", Path: "/readyz"},
		} {
			if u == nil {
				r.User = nil
			}
			if got, _, _ := authorize(t.Context(), r); got != authorizer.DecisionDeny {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	for _, role := range Roles() {
		got, _, _ := a.Authorize(t.Context(), authorizer.AttributesRecord{User: Identity{Name: "x", Role: role}.user(), Verb: "get", Path: "/metrics"})
		if (got == authorizer.DecisionAllow) != (role != RoleWorker) {
			t.Errorf("%s: metrics: %v", role, got)
		}
	}
	for path, want := range map[string]bool{
		"/readyz": true, "/readyz/etcd": true, "/livez": true, "/healthz": true, "/healthz/ping": true, "/api": true, "/apis": true, "/apis/agentctl.dev": true, "/version": true, "/openapi/v2": true, "/openapi/v3/apis": true,
		"/": false, "/metrics/slis": false, "/openapi": false, "/readyzx": false, "/healthzx": false, "/debug/pprof/profile": false, "/logs": false, "/.well-known/openid-configuration": false,
	} {
		for _, role := range Roles() {
			for _, verb := range []string{"get", "post", "put", "delete", "head", "options"} {
				got, _, _ := a.Authorize(t.Context(), authorizer.AttributesRecord{User: Identity{Name: "x", Role: role}.user(), Verb: verb, Path: path})
				if (got == authorizer.DecisionAllow) != (want && verb == "get") {
					t.Errorf("%s: %s %s: %v", role, verb, path, got)
				}
			}
		}
	}
}

// TestWorkerHasItsOwnRunsOnly: a worker that is taken over harms its own runs.
func TestWorkerHasItsOwnRunsOnly(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	admin, worker := token(t, s, "worker-admin", RoleAdmin), token(t, s, "worker-own", RoleWorker, "workers/own")
	c := newCaller(t, s)
	base := "/apis/agentctl.dev/v1alpha1/namespaces/%s/runs"
	for _, at := range []struct{ namespace, name string }{{"workers", "own"}, {"workers", "foreign"}, {"default", "own"}} {
		body := fmt.Sprintf(`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": %q}, "spec": {"agentRef": {"name": "a"}}}`, at.name)
		if code, text := c.do("POST", fmt.Sprintf(base, at.namespace), admin, strings.NewReader(body), nil); code != 201 {
			t.Fatalf("%d %s", code, text)
		}
	}
	patch := func() (io.Reader, func(*http.Request)) {
		return strings.NewReader(`{"status": {"phase": "Running"}, "spec": {"prompt": "forged"}}`), header("Content-Type", "application/merge-patch+json")
	}
	for name, c2 := range map[string]struct {
		method, path string
		code         int
	}{
		"reads its own":             {"GET", "/workers/own", 200},
		"writes the status":         {"PATCH", "/workers/own/status", 200},
		"does not write the spec":   {"PATCH", "/workers/own", 403},
		"does not delete":           {"DELETE", "/workers/own", 403},
		"does not read a foreign":   {"GET", "/workers/foreign", 403},
		"does not write a foreign":  {"PATCH", "/workers/foreign/status", 403},
		"nor one of the same name":  {"PATCH", "/default/own/status", 403},
		"does not list":             {"GET", "/workers/", 403},
		"does not watch":            {"GET", "/workers/?watch=1", 403},
		"does not watch by name":    {"GET", "/workers/?watch=1&fieldSelector=metadata.name%3Down", 403},
		"does not make any":         {"POST", "/workers/", 403},
		"does not delete them all":  {"DELETE", "/workers/", 403},
		"not by the old watch path": {"GET", "/watch/workers/own", 403},
	} {
		namespace, rest, _ := strings.Cut(strings.TrimPrefix(c2.path, "/"), "/")
		path := strings.TrimSuffix(fmt.Sprintf(base, namespace)+"/"+rest, "/")
		path = strings.Replace(path, "/runs/?", "/runs?", 1)
		var body io.Reader
		var change func(*http.Request)
		if c2.method == "PATCH" {
			body, change = patch()
		}
		if code, text := c.do(c2.method, path, worker, body, change); code != c2.code {
			t.Errorf("%s: got %d, want %d: %.200s", name, code, c2.code, text)
		}
	}
	_, text := c.do("GET", fmt.Sprintf(base, "workers")+"/own", admin, nil, nil)
	if !strings.Contains(text, `"phase":"Running"`) || strings.Contains(text, "forged") {
		t.Errorf("the run is %s", text)
	}
}

// TestNobodyWritesADecision tries to write one as each role, by every way: a
// decision is asked for, and the server writes who has asked.
func TestNobodyWritesADecision(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c, itself := newCaller(t, s), s.Loopback().BearerToken
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/decisions/approvals"
	const spec = `"spec": {"runRef": {"name": "r"}, "call": "c", "tool": "bash", "callHash": "sha256:0"}`
	forged := func(name, spec string) string {
		return fmt.Sprintf(`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Approval", "metadata": {"name": %q}, %s, "status": {"decision": "approved", "by": "mallory"}}`, name, spec)
	}
	const merge, patch, apply = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	for _, role := range Roles() {
		runs, name := []string(nil), string(role)
		if role == RoleWorker {
			runs = []string{"decisions/r"}
		}
		if code, text := c.do("POST", base, itself, strings.NewReader(forged(name, spec)), nil); code != 201 || strings.Contains(text, "approved") {
			t.Fatalf("a create made a decision: %d %s", code, text)
		}
		_, before := c.do("GET", base+"/"+name, itself, nil, nil)
		bearer := token(t, s, "writer-"+name, role, runs...)
		for _, way := range []struct{ method, path, kind, body string }{
			{"POST", base, "application/json", forged(name+"-new", spec)},
			{"PUT", base + "/" + name, "application/json", forged(name, spec)},
			{"PUT", base + "/" + name + "/status", "application/json", forged(name, spec)},
			{"POST", base + "/" + name + "/status", "application/json", forged(name, spec)},
			{"PATCH", base + "/" + name, merge, `{"status": {"decision": "approved"}}`},
			{"PATCH", base + "/" + name, merge, `{"spec": {"tool": "true"}}`},
			{"PATCH", base + "/" + name, merge, `{"metadata": {"ownerReferences": []}}`},
			{"PATCH", base + "/" + name + "/status", merge, `{"status": {"decision": "approved"}}`},
			{"PATCH", base + "/" + name + "/status", patch, `[{"op": "add", "path": "/status", "value": {"decision": "approved"}}]`},
			{"PATCH", base + "/" + name + "?fieldManager=x&force=true", apply, forged(name, spec)},
			{"PATCH", base + "/" + name + "/status?fieldManager=x&force=true", apply, forged(name, spec)},
			{"PATCH", base + "/" + name + "-new?fieldManager=x", apply, forged(name+"-new", spec)},
			{"PUT", base + "/" + name + "/decision", "application/json", `{"decision": "approved"}`},
			{"PATCH", base + "/" + name + "/decision", merge, `{"decision": "approved"}`},
		} {
			code, text := c.do(way.method, way.path, bearer, strings.NewReader(way.body), header("Content-Type", way.kind))
			if code != http.StatusForbidden {
				t.Errorf("%s by %s %s (%s): got %d, want it forbidden: %.200s", role, way.method, way.path, way.kind, code, text)
			}
		}
		if _, after := c.do("GET", base+"/"+name, itself, nil, nil); after != before {
			t.Errorf("%s has changed it: %s", role, after)
		}
		if code, _ := c.do("GET", base+"/"+name+"-new", itself, nil, nil); code != http.StatusNotFound {
			t.Errorf("%s has made one", role)
		}
	}
	// Not even the server changes a question, or what was decided on it.
	decided := `{"status": {"decision": "rejected", "by": "jane"}}`
	if code, text := c.do("PATCH", base+"/admin/status", itself, strings.NewReader(decided), header("Content-Type", merge)); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for path, body := range map[string]string{"/admin": `{"spec": {"tool": "true"}}`, "/admin/status": `{"status": {"decision": "approved"}}`} {
		if code, text := c.do("PATCH", base+path, itself, strings.NewReader(body), header("Content-Type", merge)); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d, want it invalid: %.200s", body, code, text)
		}
	}
}

func TestKubeconfigMakesAnAdmin(t *testing.T) {
	s := sharedServer(t)
	bearer := readToken(s.Kubeconfig())
	if bearer == "" {
		t.Fatal("the kubeconfig has no token")
	}
	code, text := newCaller(t, s).do("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bearer, nil, nil)
	if code != 200 {
		t.Errorf("%d %.200s", code, text)
	}
	if s.loopback.BearerToken == bearer {
		t.Error("the token of the process itself is in a file")
	}
}
