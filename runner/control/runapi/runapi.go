// Package runapi serves the requests about runs that are not objects: prompts, messages, decisions, cancellation, and the events of a run as a stream.
//
// It is one handler behind a server that authenticates and authorises requests; see
// Handle of package embedded. The state of a run is in its journal; this package keeps
// none of it.
package runapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Options are what a Server needs.
type Options struct {
	// Client reads the objects, from a cache if there is one, and writes them. Required.
	Client client.Client
	// Reader reads an object that was just written. Default: Client.
	Reader client.Reader
	// State is the folder that holds runs. Required.
	State string
	// RunID is the id of an attempt of a run, which names its journal. Required.
	RunID func(run *v1alpha1.Run, attempt int32) string
	// Executes reports whether this process executes the run of that id: its streams are
	// woken then, and poll rarely. Default: it executes none.
	Executes func(id string) bool
	// Log receives errors that no client is responsible for. Required.
	Log *slog.Logger
	// Caller returns the identity that makes a request. Required.
	Caller func(context.Context) Caller
	// SelfApproval reports whether an identity may approve calls of a run that it
	// began. Default: it may not.
	SelfApproval func() bool
	// Audit adds a value to the audit record of a request. Optional.
	Audit func(ctx context.Context, about Audited, value string)
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	// Tests use shorter times and a smaller lag.
	bodyPatience, writePatience, statusPatience, pingEvery, lookEvery time.Duration
	maxLag                                                            int64
}

// Audited names a value of an audit record.
type Audited string

// The values of an audit record.
const (
	// AuditedRun is the name of the Run that was created, or of the one whose call was
	// decided about.
	AuditedRun Audited = "run"
	// AuditedDecision is the decision, followed by Always if that is its scope.
	AuditedDecision Audited = "decision"
)

// Caller is the identity that makes a request.
type Caller struct {
	// Name is the name of the identity in the audit log.
	Name string
	// Runs are the runs of a worker, as NAMESPACE/NAME. An identity with runs may not do
	// what is reserved for persons.
	Runs []string
	// NoPaths refuses an inline workspace: its source is a folder of this machine. A
	// Workspace object may still be named.
	NoPaths bool
}

// Server serves the requests about runs.
type Server struct {
	o        Options
	mux      *http.ServeMux
	notifier notifier
	limiter  limiter

	stop     sync.Once
	stopping chan struct{}
}

// New returns a server.
func New(o Options) *Server {
	if o.Reader == nil {
		o.Reader = o.Client
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of the clock
	}
	if o.SelfApproval == nil {
		o.SelfApproval = func() bool { return false }
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, Audited, string) {}
	}
	if o.Executes == nil {
		o.Executes = func(string) bool { return false }
	}
	o.bodyPatience = cmp.Or(o.bodyPatience, bodyPatience)
	o.writePatience = cmp.Or(o.writePatience, writePatience)
	o.statusPatience = cmp.Or(o.statusPatience, statusPatience)
	o.pingEvery = cmp.Or(o.pingEvery, pingEvery)
	o.lookEvery = cmp.Or(o.lookEvery, lookEvery)
	o.maxLag = cmp.Or(o.maxLag, maxLag)
	s := &Server{o: o, mux: http.NewServeMux(), stopping: make(chan struct{})}
	s.serve(http.MethodPost, "agents/{name}/runs", s.prompt)
	s.serve(http.MethodGet, "runs/{name}/events", s.events)
	s.serve(http.MethodPost, "runs/{name}/messages", s.messages)
	s.serve(http.MethodPost, "runs/{name}/cancel", s.cancel)
	s.serve(http.MethodPost, "approvals/{name}/decision", s.decision)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, refusal(http.StatusNotFound, "there is nothing at %s", r.URL.Path))
	})
	return s
}

// ServeHTTP serves a request that has been authorised.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Wake makes the streams of a run check its journal and its object now. Without it they do
// so at their next poll.
func (s *Server) Wake(namespace, name string) {
	s.notifier.notify(client.ObjectKey{Namespace: namespace, Name: name})
}

// Close ends the streams, each with its position, and waits until they have ended or the
// context has. New streams are refused.
func (s *Server) Close(ctx context.Context) error {
	ended := s.limiter.close()
	s.stop.Do(func() { close(s.stopping) })
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("end the streams: their readers do not take the end")
	}
}

// serve registers f for a subresource. If f returns an error, it has written no response.
func (s *Server) serve(method, resource string, f func(http.ResponseWriter, *http.Request) error) {
	pattern := "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/{namespace}/" + resource
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.Method == method {
			err = f(w, r)
		} else {
			w.Header().Set("Allow", method)
			err = refusal(http.StatusMethodNotAllowed, "%s is not served here, %s is", r.Method, method)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// target is the object that a request is about.
func target(r *http.Request) client.ObjectKey {
	return client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// run reads the current Run object that a request is about.
func (s *Server) run(r *http.Request) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{}
	if err := s.o.Reader.Get(r.Context(), target(r), run); err != nil {
		return nil, err
	}
	return run, nil
}
