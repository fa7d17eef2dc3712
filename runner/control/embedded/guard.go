package embedded

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// guard is the first handler of a request. It refuses requests that a web page
// could make a browser send, requests with impersonation and those without a
// valid token, before any other handler reads them or their body.
type guard struct {
	next   http.Handler
	hosts  []string
	users  authenticator.Request
	bodies *bodies
	now    func() time.Time
}

func newGuard(next http.Handler, port string, users authenticator.Request, b *bodies, now func() time.Time) *guard {
	return &guard{next, []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}, users, b, now}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, end := g.bodies.begin(w, r, g.now())
	defer end()
	switch {
	case !slices.Contains(g.hosts, r.Host):
		// A name that an attacker lets point to this machine.
		refuse(w, http.StatusForbidden, "this server answers to its own name only")
		return
	case !g.ownOrigin(r.Header):
		refuse(w, http.StatusForbidden, "a page of another origin may not use this server")
		return
	case climbs(r.URL.Path):
		refuse(w, http.StatusForbidden, "a path with dots leads nowhere")
		return
	case impersonates(r.Header):
		// Ignored, "--as viewer" would run with the rights of an admin.
		refuse(w, http.StatusForbidden, "impersonation is not served: use a token of that identity")
		return
	}
	who := g.user(r)
	if who == nil {
		// The API server would answer the same, and wait for the body before.
		_ = http.NewResponseController(w).SetReadDeadline(g.now()) // a writer without a connection has nothing to wait for
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	own := who.GetName() == user.APIServerUser
	if c := connectionOf(r.Context()); c != nil && !c.authenticate(who.GetName(), own) {
		w.Header().Set("Connection", "close")
		busy(w, fmt.Sprintf("too many connections are open, of %s or of all", who.GetName()))
		return
	}
	if !own && !body.count(who.GetName()) {
		busy(w, fmt.Sprintf("%d requests of %s are still sending their body", bodiesEach, who.GetName()))
		return
	}
	g.next.ServeHTTP(w, r)
}

// user is the user of a request; nil: it has no valid token. The API server
// authenticates again, so its request is not changed.
func (g *guard) user(r *http.Request) user.Info {
	probe := r.WithContext(r.Context())
	probe.Header = r.Header.Clone() // an authenticator removes a token that it knows
	answer, ok, err := g.users.AuthenticateRequest(probe)
	if err != nil || !ok {
		return nil
	}
	return answer.User
}

func (g *guard) ownOrigin(h http.Header) bool {
	if site := h.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	for _, origin := range h.Values("Origin") {
		host, ok := strings.CutPrefix(origin, "https://")
		if !ok || !slices.Contains(g.hosts, host) {
			return false
		}
	}
	return true
}

// climbs finds what no client means: names are never dots.
func climbs(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") { // names are in canonical form
			return true
		}
	}
	return false
}

// reasons are the words for what is refused here.
var reasons = map[int32]metav1.StatusReason{
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusInsufficientStorage: "InsufficientStorage",
}

// busy refuses a request that may be sent again soon.
func busy(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, message)
}

// refuse answers as the API does, so that clients can show the message.
func refuse(w http.ResponseWriter, code int32, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{ // the client may be gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Reason: reasons[code], Code: code,
	})
}
