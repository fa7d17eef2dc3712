package embedded

import (
	"net/http"
	"strings"
	"testing"
)

// The prompt of a run that waits for an approval, or has not begun, could be
// replaced by anyone who may write objects.
func TestSpecOfARunDoesNotChange(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c, bearer := newCaller(t, s), token(t, s, "immutable-user", RoleUser)
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/immutable/runs"
	const merge = "application/merge-patch+json"
	spec := `{"agentRef": {"name": "a"}, "prompt": "look", "inputs": {"a": 1, "b": [1]}, "workspace": {"strategy": "Empty"}, "limits": {"maxSteps": 3, "timeout": "60m"}, "backoffLimit": 1, "startDeadline": "10m"}`
	create := func(name string) string {
		t.Helper()
		body := `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "` + name + `"}, "spec": ` + spec + `}`
		code, text := c.do("POST", base, bearer, strings.NewReader(body), nil)
		if code != http.StatusCreated {
			t.Fatalf("create: %d %s", code, text)
		}
		return text
	}
	text := create("fixed")
	for _, change := range []string{
		`{"agentRef": {"name": "b"}}`, `{"prompt": "remove everything"}`, `{"prompt": null}`, `{"prompt": ""}`,
		`{"inputs": {"a": 2}}`, `{"inputs": {"a": null, "c": 1}}`, `{"inputs": null}`, `{"inputs": {"b": [2]}}`,
		`{"policyRefs": [{"name": "ci"}]}`, `{"workspace": null}`, `{"workspace": {"source": {"path": "/"}, "strategy": "InPlace"}}`, `{"workspace": null, "workspaceRef": {"name": "w"}}`,
		`{"limits": null}`, `{"limits": {"maxSteps": 4}}`, `{"limits": {"maxSteps": null}}`, `{"limits": {"maxTokens": 5}}`, `{"limits": {"maxCost": "1.00"}}`,
		`{"limits": {"maxParallelTools": 2}}`, `{"limits": {"timeout": "61m"}}`, `{"limits": {"timeout": null}}`,
		`{"backoffLimit": 2}`, `{"backoffLimit": null}`, `{"startDeadline": "11m"}`,
		`{"suspend": true, "prompt": "other"}`,
	} {
		for who, bearer := range map[string]string{"a user": bearer, "the server itself": s.Loopback().BearerToken} {
			code, answer := c.do("PATCH", base+"/fixed", bearer, strings.NewReader(`{"spec": `+change+`}`), header("Content-Type", merge))
			if code != http.StatusUnprocessableEntity || !strings.Contains(answer, "immutable except suspend, cancel and ttlAfterFinished: delete the Run") {
				t.Errorf("%s by %s: got %d, want it refused with the next step: %.300s", change, who, code, answer)
			}
		}
	}
	// The same values written in another way are not a change; a client in Go
	// writes durations so, and leaves out what is empty.
	for _, change := range []string{
		`{"suspend": true}`, `{"suspend": false}`, `{"ttlAfterFinished": "1h"}`, `{"ttlAfterFinished": null}`,
		`{"startDeadline": "10m0s", "limits": {"timeout": "1h0m0s"}}`, `{"startDeadline": null}`, `{"cancel": true}`,
	} {
		if code, answer := c.do("PATCH", base+"/fixed", bearer, strings.NewReader(`{"spec": `+change+`}`), header("Content-Type", merge)); code != http.StatusOK {
			t.Errorf("%s: %d %.300s", change, code, answer)
		}
	}
	body := strings.Replace(text, `"prompt":"look"`, `"prompt":"other"`, 1)
	if body == text {
		t.Fatalf("no prompt in %s", text)
	}
	if code, answer := c.do("PUT", base+"/fixed", bearer, strings.NewReader(body), nil); code < 400 {
		t.Errorf("a PUT changed the prompt: %d %s", code, answer)
	}
	apply := `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "fixed"}, "spec": {"agentRef": {"name": "a"}, "inputs": {"a": 7}}}`
	if code, answer := c.do("PATCH", base+"/fixed?fieldManager=x&force=true", bearer, strings.NewReader(apply), header("Content-Type", "application/apply-patch+yaml")); code != http.StatusUnprocessableEntity {
		t.Errorf("an apply changed the inputs: %d %.300s", code, answer)
	}
	if _, now := c.do("GET", base+"/fixed", bearer, nil, nil); !strings.Contains(now, `"prompt":"look"`) || !strings.Contains(now, `"a":1`) {
		t.Errorf("it is %s", now)
	}
}
