package embedded

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/endpoints/request"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// liveResources are the subresources that a kind does not define itself:
// requests to a run, and its output.
var liveResources = map[string][]string{
	"agents":  {"runs"},
	"runs":    {"events", "messages", "cancel"},
	approvals: {"decision"},
}

// mount passes the requests for those to a handler of their own, after
// authentication, authorization and audit.
type mount struct {
	api  http.Handler
	live atomic.Pointer[http.Handler]
}

// runsCheck is the name of the check of /readyz that requests to runs are served.
const runsCheck = "runs"

// ready is that check: a client that has started the server begins a run at once.
func (m *mount) ready(*http.Request) error {
	if m.live.Load() == nil {
		return errors.New("requests to runs are not served yet")
	}
	return nil
}

func (m *mount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, _ := request.RequestInfoFrom(r.Context())
	if !isLive(info) {
		m.api.ServeHTTP(w, r)
		return
	}
	h := m.live.Load()
	if h == nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the server is still starting")
		return
	}
	// The path that was authorized is the path that is served: it is built from
	// that.
	judged := r.WithContext(r.Context())
	judged.URL = &url.URL{Path: livePath(info.Namespace, info.Parts...), RawQuery: r.URL.RawQuery}
	(*h).ServeHTTP(w, judged)
}

func isLive(info *request.RequestInfo) bool {
	return info != nil && info.IsResourceRequest && info.APIPrefix == "apis" && info.APIGroup == group && info.APIVersion == v1alpha1.GroupVersion.Version &&
		len(info.Parts) == 3 && info.Verb != "watch" && slices.Contains(liveResources[info.Resource], info.Subresource) &&
		len(validation.IsDNS1123Label(info.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(info.Name)) == 0
}

func isStream(info *request.RequestInfo) bool {
	return isLive(info) && info.Verb == "get" && info.Resource == "runs" && info.Subresource == "events"
}

// longRunning reports whether a request has no time-out and ends with its
// client. Such requests do not count among those that the server handles at a
// time.
func longRunning(_ *http.Request, info *request.RequestInfo) bool {
	return info.Verb == "watch" || isStream(info)
}

func livePath(namespace string, parts ...string) string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + strings.Join(parts, "/")
}

// resolver has /ws/RUN and /ws/NAMESPACE/RUN authorized, audited and served as
// the events of that run: the author of a page need not know the path of a
// cluster.
type resolver struct{ request.RequestInfoResolver }

// NewRequestInfo implements request.RequestInfoResolver.
func (r resolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	rest, ok := strings.CutPrefix(req.URL.Path, "/ws/")
	if !ok {
		return r.RequestInfoResolver.NewRequestInfo(req)
	}
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		namespace, name = "default", rest
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return r.RequestInfoResolver.NewRequestInfo(req) // a path without an object
	}
	meant := req.WithContext(req.Context())
	meant.URL = &url.URL{Path: livePath(namespace, "runs", name, "events")}
	info, err := r.RequestInfoResolver.NewRequestInfo(meant)
	if info != nil {
		info.Path = req.URL.Path
	}
	return info, err
}
