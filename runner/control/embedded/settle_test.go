package embedded

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestAnApplyWaitsForAChangedDefinition(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tries, stale := 0, 3
	s := newSettling(func() time.Time { return now })
	s.wait = func(*http.Request) bool { now = now.Add(settleEvery); return true }
	h := s.hold(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if tries++; tries <= stale {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"message": ".spec.x: field not declared in schema"}`)
			return
		}
		w.Header().Set("X-Served", "yes")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}))
	send := func(info request.RequestInfo, kind, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPatch, "/x", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), &info)))
		return w
	}
	agent := request.RequestInfo{APIGroup: group, Verb: "patch"}
	const apply = "application/apply-patch+yaml"
	if w := send(agent, apply, "a"); w.Code != 500 || tries != 1 {
		t.Errorf("without a change: %d after %d tries", w.Code, tries)
	}
	stale = 1
	send(request.RequestInfo{APIGroup: crdGroup, Verb: "patch"}, apply, "") // a definition changes
	tries, stale = 0, 3
	if w := send(agent, apply, "the object"); w.Code != 201 || w.Body.String() != "the object" || w.Header().Get("X-Served") != "yes" || tries != 4 {
		t.Errorf("after a change: %d %s after %d tries", w.Code, w.Body, tries)
	}
	tries = 0
	if w := send(agent, "application/merge-patch+json", ""); w.Code != 500 || tries != 1 {
		t.Errorf("another patch: %d after %d tries", w.Code, tries)
	}
	tries, stale = 0, 1<<20
	if w := send(agent, apply, "x"); w.Code != 500 || now.Sub(time.Unix(1_800_000_000, 0)) > 2*settleTime {
		t.Errorf("a field that no definition has: %d at %s", w.Code, now)
	}
}

func TestTheFirstApplyAfterAChangeOfADefinitionIsServed(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	admin := token(t, s, "definition-admin", RoleAdmin)
	c := newCaller(t, s)
	patch := func(path, kind, body string) (int, string) {
		return c.do("PATCH", path, admin, strings.NewReader(body), header("Content-Type", kind))
	}
	const skills = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/skills.agentctl.dev"
	const at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	for i := range 5 {
		name := fmt.Sprintf("added%d", i)
		if code, text := patch(skills, "application/json-patch+json", `[{"op": "add", "path": "`+at+name+`", "value": {"type": "string"}}]`); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
		code, text := patch("/apis/agentctl.dev/v1alpha1/namespaces/settle/skills/one?fieldManager=test&force=true", "application/apply-patch+yaml",
			`{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Skill", "metadata": {"name": "one"}, "spec": {"dir": "/skills/x", "`+name+`": "here"}}`)
		if code != 200 && code != 201 || !strings.Contains(text, `"here"`) {
			t.Errorf("change %d: got %d %s", i, code, text)
		}
		if code, text := patch(skills, "application/json-patch+json", `[{"op": "remove", "path": "`+at+name+`"}]`); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
	}
}

func TestAReferenceToASecretIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := newCaller(t, s)
	user := token(t, s, "secret-user", RoleUser)
	base := "/apis/agentctl.dev/v1alpha1/namespaces/secrets/"
	for name, object := range map[string]string{
		"models": `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Model", "metadata": {"name": "m"}, "spec": {"provider": "openai", "model": "x", "apiKey": {"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}}}`,
		"tools":  `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Tool", "metadata": {"name": "t"}, "spec": {"description": "x", "source": {"builtin": {"name": "bash"}}, "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]}}`,
	} {
		code, text := c.do("POST", base+name, user, strings.NewReader(object), nil)
		if code != 422 || !strings.Contains(text, "valueFrom.secretKeyRef") || !strings.Contains(text, "use env, file or exec") {
			t.Errorf("%s: got %d %s", name, code, text)
		}
		code, text = c.do("POST", base+name, user, strings.NewReader(strings.Replace(object, `"secretKeyRef": {"name": "a", "key": "b"}`, `"env": "A"`, 1)), nil)
		if code != 201 {
			t.Errorf("%s: got %d %s", name, code, text)
		}
	}
}
