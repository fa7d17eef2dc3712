package embedded

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestTheServerWritesWhoBeganARun(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c, joe, root := newCaller(t, s), token(t, s, "starter-joe", RoleUser), token(t, s, "starter-root", RoleAdmin)
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/starter/runs"
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	run := func(meta string) string {
		return `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {` + meta + `}, "spec": {"agentRef": {"name": "a"}}}`
	}
	by := func(text string) string {
		var o struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		return o.Metadata.Annotations[v1alpha1.AnnotationStartedBy]
	}
	const forged = `"annotations": {"agentctl.dev/started-by": "jane", "mine": "1"}`
	for name, make := range map[string]func(meta string) (int, string){
		"post": func(meta string) (int, string) { return c.do("POST", base, joe, strings.NewReader(run(meta)), nil) },
		"apply": func(meta string) (int, string) {
			return c.do("PATCH", base+"/apply?fieldManager=x", joe, strings.NewReader(run(meta)), header("Content-Type", apply))
		},
	} {
		code, text := make(`"name": "` + name + `", ` + forged)
		if code != http.StatusCreated || by(text) != "starter-joe" {
			t.Errorf("%s: %d, begun by %q: %s", name, code, by(text), text)
		}
		for _, bearer := range []string{joe, root, s.Loopback().BearerToken} {
			for _, change := range []string{`{"agentctl.dev/started-by": "jane"}`, `{"agentctl.dev/started-by": null}`, `null`} {
				code, text := c.do("PATCH", base+"/"+name, bearer, strings.NewReader(`{"metadata": {"annotations": `+change+`}}`), header("Content-Type", merge))
				if code != http.StatusOK || by(text) != "starter-joe" {
					t.Errorf("%s: %s: %d, begun by %q", name, change, code, by(text))
				}
			}
		}
	}
	_, _ = c.do("PATCH", base+"/apply?fieldManager=x&force=true", joe, strings.NewReader(run(`"name": "apply"`)), header("Content-Type", apply))
	_, _ = c.do("PATCH", base+"/apply/status", root, strings.NewReader(`{"metadata": {`+forged+`}, "status": {"phase": "Running"}}`), header("Content-Type", merge))
	if _, text := c.do("GET", base+"/apply", joe, nil, nil); by(text) != "starter-joe" {
		t.Errorf("begun by %q", by(text))
	}
	// The client of this process begins runs for others.
	if _, text := c.do("POST", base, s.Loopback().BearerToken, strings.NewReader(run(`"name": "for-jane", `+forged)), nil); by(text) != "jane" {
		t.Errorf("begun by %q: %s", by(text), text)
	}
	code, text := c.do("POST", base, joe, strings.NewReader(run(`"generateName": "some-"`)), nil)
	var made struct{ Metadata struct{ Name string } }
	if err := json.Unmarshal([]byte(text), &made); code != http.StatusCreated || err != nil {
		t.Fatal(code, err, text)
	}
	if !slices.ContainsFunc(readAudit(t, s.audit.path), func(r AuditRecord) bool {
		return r.User == "starter-joe" && r.Verb == "create" && r.Run == made.Metadata.Name
	}) {
		t.Errorf("no audit line has the name %q that the server chose", made.Metadata.Name)
	}
}
