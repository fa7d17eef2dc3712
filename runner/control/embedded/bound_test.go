package embedded

import (
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestARoleIsBoundToANamespace(t *testing.T) {
	for _, role := range Roles() {
		if role == RoleWorker {
			continue
		}
		free, bound := Identity{Name: "x", Role: role}.user(), Identity{Name: "x", Role: role, Namespace: "web"}.user()
		for resource := range judged {
			for _, verb := range allVerbs {
				for _, ns := range []string{"web", "default", "", "web2"} {
					at := authorizer.AttributesRecord{User: bound, Verb: verb, APIGroup: group, Resource: resource, Name: "x", Namespace: ns, ResourceRequest: true}
					got, _, _ := authorize(t.Context(), at)
					at.User = free
					want, _, _ := authorize(t.Context(), at)
					if ns != "web" {
						want = authorizer.DecisionDeny
					}
					if got != want {
						t.Errorf("%s: %s %s in %q: %v, want %v", role, verb, resource, ns, got, want)
					}
				}
			}
		}
		if got, _, _ := authorize(t.Context(), authorizer.AttributesRecord{User: bound, Verb: "get", Path: metricsPath}); got == authorizer.DecisionAllow {
			t.Errorf("%s reads figures of every namespace", role)
		}
	}
	for _, id := range []Identity{{Name: "x", Role: RoleUser, Namespace: "A/b"}, {Name: "x", Role: RoleWorker, Namespace: "web", Runs: []string{"web/r"}}} {
		if id.check() == nil {
			t.Errorf("%+v is accepted", id)
		}
	}
}
