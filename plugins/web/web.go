// Package web holds the tools that read pages of the web and search it. They reach the
// network only through the proxy of their sandbox, so that what their Tool declares as
// its network holds, whatever a page or a redirect asks for.
package web

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"net/url"
	"os"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// Tools returns webfetch and websearch.
func Tools() []sdk.Tool {
	s := newSet(os.Getenv)
	return []sdk.Tool{
		sdk.New("webfetch", aboutFetch, s.fetch, sdk.Schema(json.RawMessage(fetchSchema))),
		sdk.New("websearch", aboutSearch, s.search, sdk.Schema(json.RawMessage(searchSchema))),
	}
}

// set is what the calls of one process share.
type set struct {
	limits limits
	robots *robotsBook
	pages  *pageBook
	// ignoreRobots is declared by the manifest.
	ignoreRobots bool
	// proxy of the sandbox; nil where there is none.
	proxy *url.URL
	// roots are those of the system if nil.
	roots *x509.CertPool
	// engine is the server of websearch.
	engine engine
}

// newSet returns what the environment of the program declares.
func newSet(env func(string) string) *set {
	return &set{
		limits: defaultLimits, robots: newRobotsBook(time.Now), pages: newPageBook(time.Now),
		ignoreRobots: env(robotsVariable) == "ignore", proxy: proxyOf(env),
		engine: engine{endpoint: env(endpointVariable), header: cmp.Or(env(headerVariable), "Authorization"), secret: env(secretVariable)},
	}
}

// limits bound what one call takes.
type limits struct {
	// wire is how many bytes of a body are read, media those of an image or a PDF, and
	// body how many they may be when they are unpacked.
	wire, media, body int64
	redirects         int
	// time of a call where it names none, and at most.
	time, mostTime time.Duration
	// robots bounds the time and the size of a robots.txt.
	robotsTime time.Duration
	robots     int64
	// answer bounds the answer of a search server.
	answer int64
}

var defaultLimits = limits{
	wire: 5 << 20, media: 10 << 20, body: 10 << 20,
	redirects: 5,
	time:      30 * time.Second, mostTime: 120 * time.Second,
	robotsTime: 10 * time.Second, robots: 512 << 10,
	answer: 2 << 20,
}
