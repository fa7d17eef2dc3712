package embedded

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	authorizationGroup  = "authorization.k8s.io"
	authenticationGroup = "authentication.k8s.io"
	// maxReview bounds the body of a review.
	maxReview = 64 << 10
)

// reviews answers the requests of kubectl for "auth can-i" and "auth whoami":
// what the client may do, and which user it is. Nothing is stored.
type reviews struct {
	next       http.Handler
	authorizer authorizer.Authorizer
}

// isReview reports whether a request is one that reviews answers. Every
// identity may send it, about itself.
func isReview(group, resource string) bool {
	switch group {
	case authorizationGroup:
		return resource == "selfsubjectaccessreviews" || resource == "selfsubjectrulesreviews"
	case authenticationGroup:
		return resource == "selfsubjectreviews"
	}
	return false
}

func (v *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.Verb != "create" || info.APIVersion != "v1" || info.Namespace != "" || !isReview(info.APIGroup, info.Resource) {
		v.next.ServeHTTP(w, r)
		return
	}
	who, ok := request.UserFrom(r.Context())
	if !ok {
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		refuse(w, http.StatusBadRequest, "read the review: "+err.Error())
		return
	}
	asked, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		refuse(w, http.StatusBadRequest, "read the review: "+err.Error())
		return
	}
	answer, why := v.answer(r, who, asked)
	if why != "" {
		refuse(w, http.StatusBadRequest, why)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// answer fills in the status of a review; or why it is not one.
func (v *reviews) answer(r *http.Request, who user.Info, asked runtime.Object) (answer runtime.Object, why string) {
	switch a := asked.(type) {
	case *authenticationv1.SelfSubjectReview:
		a.Status.UserInfo = authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
		for name, values := range who.GetExtra() {
			a.Status.UserInfo.Extra[name] = values
		}
		return a, ""
	case *authorizationv1.SelfSubjectAccessReview:
		at, ok := attributes(who, &a.Spec)
		if !ok {
			return nil, "the review needs exactly one of resourceAttributes, nonResourceAttributes"
		}
		decision, reason, err := v.authorizer.Authorize(r.Context(), at)
		a.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
		if err != nil {
			a.Status.EvaluationError = err.Error()
		}
		return a, ""
	case *authorizationv1.SelfSubjectRulesReview:
		a.Status = rules(who)
		if bound := boundTo(who); bound != "" && a.Spec.Namespace != bound {
			a.Status.ResourceRules = []authorizationv1.ResourceRule{}
		}
		return a, ""
	}
	return nil, "the body is not a review of the caller"
}

func attributes(who user.Info, s *authorizationv1.SelfSubjectAccessReviewSpec) (authorizer.Attributes, bool) {
	switch o, n := s.ResourceAttributes, s.NonResourceAttributes; {
	case o != nil && n == nil:
		return &authorizer.AttributesRecord{
			User: who, Verb: o.Verb, Namespace: o.Namespace, APIGroup: o.Group, APIVersion: o.Version, Resource: o.Resource, Subresource: o.Subresource, Name: o.Name, ResourceRequest: true,
		}, true
	case n != nil && o == nil:
		return &authorizer.AttributesRecord{User: who, Verb: n.Verb, Path: n.Path}, true
	}
	return nil, false
}

// rules are the grants of an identity in the form of Kubernetes. A grant with
// exceptions has no such form: then the list is marked as incomplete.
func rules(who user.Info) authorizationv1.SubjectRulesReviewStatus {
	s := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	role, ok := roleOf(who)
	if !ok {
		return s
	}
	for i := range grants[role] {
		g := &grants[role][i]
		rule := authorizationv1.ResourceRule{Verbs: g.verbs, APIGroups: []string{g.group}, Resources: g.resources}
		if g.own {
			rule.ResourceNames = append(rule.ResourceNames, who.GetExtra()[runsExtra]...)
		}
		if len(g.except) > 0 {
			s.Incomplete, s.EvaluationError = true, "the role may not write approvals, which a list of rules cannot say"
		}
		s.ResourceRules = append(s.ResourceRules, rule)
	}
	paths := slices.Clone(openPaths)
	if role != RoleWorker {
		paths = append(paths, metricsPath)
	}
	s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"get"}, NonResourceURLs: paths})
	return s
}
