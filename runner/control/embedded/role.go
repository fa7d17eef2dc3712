package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
)

// Role is what an identity may do. A tool, an agent and a run's sandbox have no
// role: they never get a token.
type Role string

// The roles.
const (
	// RoleViewer reads the objects.
	RoleViewer Role = "viewer"
	// RoleRunner begins runs of the agents that are there, and follows runs.
	RoleRunner Role = "runner"
	// RoleUser also writes them, but neither approvals nor any status.
	RoleUser Role = "user"
	// RoleApprover is a user who also decides on approvals.
	RoleApprover Role = "approver"
	// RoleAdmin may do everything that is served.
	RoleAdmin Role = "admin"
	// RoleController reads and writes the objects and their status.
	RoleController Role = "controller"
	// RoleWorker reads the runs that its token names and writes their status.
	RoleWorker Role = "worker"
)

// Roles lists the roles, as help texts do.
func Roles() []Role {
	return []Role{RoleViewer, RoleRunner, RoleUser, RoleApprover, RoleAdmin, RoleController, RoleWorker}
}

const (
	group     = "agentctl.dev"
	crdGroup  = "apiextensions.k8s.io"
	approvals = "approvals"
	// rolePrefix is the prefix of the group that gives a user its role.
	rolePrefix = "agentctl.dev:role:"
	// namespacePrefix begins the group of a user that is bound to a namespace.
	namespacePrefix = "agentctl.dev:namespace:"
	// runsExtra is where a worker's user has the names of its runs.
	runsExtra = "agentctl.dev/runs"
)

var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}
	allVerbs   = slices.Concat(readVerbs, writeVerbs)
)

// grant allows verbs on resources of a group. A resource is "runs",
// "runs/status", "*" for every resource without its subresources, or "*/*" for
// every subresource.
type grant struct {
	group     string
	resources []string
	except    []string
	verbs     []string
	// own limits the grant to the runs that the identity names.
	own bool
}

var everything = []string{"*", "*/*"}

// asked are the subresources by which something is asked of an agent or a run;
// see mount.
var asked = []string{"agents/runs", "runs/messages", "runs/cancel"}

// readEvents is granted to every role that reads the objects that events are
// about. Only the server itself writes them.
var readEvents = grant{group: "", resources: []string{"events"}, verbs: readVerbs}

// grants are all that roles may do with objects. Everything else is refused;
// that includes verbs such as impersonate, bind and escalate, which no grant
// has. Approvals and the decisions on them are written by the server itself
// alone: a person sends a decision to the subresource.
var grants = map[Role][]grant{
	RoleViewer: {
		readEvents,
		{group: group, resources: everything, verbs: readVerbs},
	},
	// A Run is not written as an object: what it names is checked by the request for
	// a run of an agent.
	RoleRunner: {
		readEvents,
		{group: group, resources: []string{"agents", "runs", "runs/status", "runs/events"}, verbs: readVerbs},
		{group: group, resources: []string{"agents/runs"}, verbs: []string{"create"}},
	},
	RoleUser: {
		readEvents,
		{group: group, resources: everything, verbs: readVerbs},
		{group: group, resources: []string{"*"}, except: []string{approvals}, verbs: writeVerbs},
		{group: group, resources: asked, verbs: []string{"create"}},
	},
	RoleApprover: {
		readEvents,
		{group: group, resources: everything, verbs: readVerbs},
		{group: group, resources: []string{"*"}, except: []string{approvals}, verbs: writeVerbs},
		{group: group, resources: asked, verbs: []string{"create"}},
		{group: group, resources: []string{approvals + "/decision"}, verbs: []string{"create"}},
	},
	RoleController: {
		readEvents,
		{group: group, resources: everything, verbs: readVerbs},
		{group: group, resources: everything, except: []string{approvals}, verbs: writeVerbs},
		{group: crdGroup, resources: []string{"customresourcedefinitions"}, verbs: readVerbs},
	},
	RoleAdmin: {
		readEvents,
		{group: group, resources: everything, verbs: readVerbs},
		{group: group, resources: everything, except: []string{approvals}, verbs: writeVerbs},
		{group: group, resources: []string{approvals + "/decision"}, verbs: []string{"create"}},
		{group: group, resources: []string{approvals}, verbs: []string{"delete", "deletecollection"}},
		{group: crdGroup, resources: everything, verbs: allVerbs},
	},
	RoleWorker: {
		{group: group, resources: []string{"runs"}, verbs: []string{"get"}, own: true},
		{group: group, resources: []string{"runs/status"}, verbs: []string{"get", "update", "patch"}, own: true},
	},
}

// openPaths are what an identity of any role may read besides objects: what the
// roles system:discovery and system:public-info-viewer of a cluster give to
// every authenticated user.
var openPaths = []string{"/healthz", "/livez", "/readyz", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/version"}

// metricsPath has metrics of the server, for identities that may read the
// objects.
const metricsPath = "/metrics"

// newAuthorizer authorizes by the grants. The server's own in-process client is
// in the privileged group, for which there are no other tokens.
func newAuthorizer() authorizer.Authorizer {
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), authorizer.AuthorizerFunc(authorize))
}

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	role, ok := roleOf(a.GetUser())
	if !ok {
		return authorizer.DecisionDeny, "the identity has no role", nil
	}
	if a.IsResourceRequest() && a.GetVerb() == "create" && a.GetSubresource() == "" && isReview(a.GetAPIGroup(), a.GetResource()) {
		return authorizer.DecisionAllow, "", nil
	}
	bound := boundTo(a.GetUser())
	if !a.IsResourceRequest() {
		if a.GetVerb() == "get" && (openPath(a.GetPath()) || a.GetPath() == metricsPath && role != RoleWorker && bound == "") {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, fmt.Sprintf("role %s may not do this", role), nil
	}
	if bound != "" && a.GetNamespace() != bound {
		return authorizer.DecisionDeny, fmt.Sprintf("its role %s is bound to the namespace %s", role, bound), nil
	}
	for i := range grants[role] {
		if grants[role][i].covers(a) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionDeny, fmt.Sprintf("role %s may not do this", role), nil
}

func (g *grant) covers(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == g.group && slices.Contains(g.verbs, a.GetVerb()) && g.names(a.GetResource(), a.GetSubresource()) &&
		(!g.own || owns(a.GetUser(), a.GetNamespace(), a.GetName()))
}

func (g *grant) names(resource, sub string) bool {
	if slices.Contains(g.except, resource) || slices.Contains(g.except, resource+"/"+sub) {
		return false
	}
	if sub == "" {
		return slices.Contains(g.resources, "*") || slices.Contains(g.resources, resource)
	}
	return slices.Contains(g.resources, "*/*") || slices.Contains(g.resources, resource+"/"+sub)
}

func owns(u user.Info, namespace, name string) bool {
	return name != "" && slices.Contains(u.GetExtra()[runsExtra], namespace+"/"+name)
}

func openPath(path string) bool {
	return slices.ContainsFunc(openPaths, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// boundTo is the namespace to which a user is bound; "": it is not bound.
func boundTo(u user.Info) string {
	for _, g := range u.GetGroups() {
		if ns, ok := strings.CutPrefix(g, namespacePrefix); ok {
			return ns
		}
	}
	return ""
}

func roleOf(u user.Info) (Role, bool) {
	if u == nil {
		return "", false
	}
	for _, g := range u.GetGroups() {
		if r, ok := strings.CutPrefix(g, rolePrefix); ok && slices.Contains(Roles(), Role(r)) {
			return Role(r), true
		}
	}
	return "", false
}
