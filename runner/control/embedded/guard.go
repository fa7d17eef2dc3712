package embedded

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guard refuses, before anything else looks at them, the requests that a web
// page could make a browser send, and those that speak for somebody else.
type guard struct {
	next  http.Handler
	hosts []string
}

func newGuard(next http.Handler, port string) *guard {
	return &guard{next, []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !slices.Contains(g.hosts, r.Host):
		// A name that an attacker lets point to this machine.
		refuse(w, http.StatusForbidden, "this server answers to its own name only")
	case !g.ownOrigin(r.Header):
		refuse(w, http.StatusForbidden, "a page of another origin may not use this server")
	case climbs(r.URL.Path):
		refuse(w, http.StatusForbidden, "a path with dots leads nowhere")
	case impersonates(r.Header):
		// Ignored, "--as viewer" would run with the rights of an admin.
		refuse(w, http.StatusForbidden, "impersonation is not served: use a token of that identity")
	default:
		g.next.ServeHTTP(w, r)
	}
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
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
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
