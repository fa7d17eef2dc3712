package client

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const denied = `agents.agentctl.dev "a" is forbidden: User "jane" cannot patch resource "agents" in API group "agentctl.dev" in the namespace "web"`

func TestDenialIsToldInFewWords(t *testing.T) {
	for name, c := range map[string]struct{ message, want, hint string }{
		"agentd": {
			denied + ": role viewer may not do this",
			`agent "a": user "jane" (role viewer) may not patch agents in namespace "web"`,
			`ask an admin of context "prod" for another role: agentd token rotate --role user jane`,
		},
		"a decision": {
			`approvals.agentctl.dev "x" is forbidden: User "jane" cannot create resource "approvals/decision" in API group "agentctl.dev" in the namespace "web": role user may not do this`,
			`agent "a": user "jane" (role user) may not create approvals/decision in namespace "web"`,
			`ask an admin of context "prod" for another role: agentd token rotate --role approver jane`,
		},
		"more than a user may": {
			`x is forbidden: User "jane" cannot delete resource "approvals" in API group "agentctl.dev" in the namespace "web": role user may not do this`,
			`agent "a": user "jane" (role user) may not delete approvals in namespace "web"`,
			`ask an admin of context "prod" for another role: agentd token rotate --role ROLE jane`,
		},
		"a cluster": {
			denied,
			`agent "a": user "jane" may not patch agents in namespace "web"`,
			`ask an admin of context "prod" for it; what is granted: kubectl auth can-i --list`,
		},
		"everywhere": {
			`agents.agentctl.dev is forbidden: User "system:serviceaccount:a:b" cannot list resource "agents" in API group "agentctl.dev" at the cluster scope: RBAC: clusterrole "x" not found`,
			`agent "a": user "system:serviceaccount:a:b" may not list agents: RBAC: clusterrole "x" not found`,
			`ask an admin of context "prod" for it; what is granted: kubectl auth can-i --list`,
		},
		"a quota": {
			`agents.agentctl.dev "a" is forbidden: exceeded quota: objects`,
			`agent "a": the server refuses it: exceeded quota: objects`,
			``,
		},
		"no words": {"", `agent "a": this identity may not do that: Forbidden`, `ask an admin of context "prod"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := &StatusError{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, About: Ref{Kind: "Agent", Name: "a"}, Message: c.message, server: `context "prod"`}
			if e.Error() != c.want || Hint(e) != c.hint {
				t.Errorf("got  %s\nwant %s\nhint %s\nwant %s", e.Error(), c.want, Hint(e), c.hint)
			}
		})
	}
}

// TestDenialsOfOneKindAreEqual: what one word of an admin would end is said once.
func TestDenialsOfOneKindAreEqual(t *testing.T) {
	read := func(message string) Denial {
		t.Helper()
		d, _, ok := Denied(&StatusError{Code: http.StatusForbidden, Message: message})
		if !ok {
			t.Fatalf("%s: is no denial", message)
		}
		return d
	}
	agents := read(denied)
	if models := read(`x is forbidden: User "jane" cannot patch resource "models" in API group "agentctl.dev" in the namespace "web"`); models != agents {
		t.Errorf("%+v, %+v", agents, models)
	}
	if other := read(`x is forbidden: User "jane" cannot patch resource "models" in API group "agentctl.dev" in the namespace "prod"`); other == agents {
		t.Error("another namespace is another matter")
	}
	for _, err := range []error{nil, errors.New(denied), &StatusError{Code: http.StatusNotFound, Message: denied}} {
		if _, _, ok := Denied(err); ok {
			t.Errorf("%v is one", err)
		}
	}
}
