package embedded

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// settleTime is how long after the change of a definition a kind may still
	// be served by the old schema, and settleEvery the time between two
	// attempts.
	settleTime  = 2 * time.Second
	settleEvery = 20 * time.Millisecond
	// maxApplied bounds the body of an apply that may be tried again: that of the API
	// server.
	maxApplied = 3 << 20
	// staleSchema is in the answer of the API server to an apply with a field that the
	// schema does not have; its status is 500.
	staleSchema = "field not declared in schema"
)

// settling has the first applies after the change of a definition wait for it. The
// API server learns of its own definitions by a watch, and until then answers with
// an error of the server as if a field were unknown.
type settling struct {
	now     func() time.Time
	wait    func(*http.Request) bool // until the next try; false: the request has ended
	changed atomic.Int64             // when a definition was written last, in nanoseconds
}

func newSettling(now func() time.Time) *settling {
	return &settling{now: now, wait: func(r *http.Request) bool {
		t := time.NewTimer(settleEvery)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-r.Context().Done():
			return false
		}
	}}
}

// hold looks after the requests that reach next.
func (s *settling) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		switch {
		case ok && info.APIGroup == crdGroup && info.Subresource == "" && info.Verb != "get" && info.Verb != "list" && info.Verb != "watch":
			defer func() { s.changed.Store(s.now().UnixNano()) }()
		case ok && info.APIGroup == group && strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyYAMLPatchType)) && s.recent():
			s.apply(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *settling) recent() bool {
	age := s.now().Sub(time.Unix(0, s.changed.Load()))
	return age >= 0 && age < settleTime
}

// apply serves an apply, and repeats it as long as the definition may not be
// known yet. A failed apply has changed nothing.
func (s *settling) apply(w http.ResponseWriter, r *http.Request, next http.Handler) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxApplied+1))
	if err != nil || len(body) > maxApplied { // the API server refuses it, with its own error
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		next.ServeHTTP(w, r)
		return
	}
	for {
		try := r.WithContext(r.Context())
		try.Header = r.Header.Clone()
		try.Body = io.NopCloser(bytes.NewReader(body))
		a := &answer{header: http.Header{}, code: http.StatusOK}
		next.ServeHTTP(a, try)
		if a.code == http.StatusInternalServerError && bytes.Contains(a.body.Bytes(), []byte(staleSchema)) && s.recent() && s.wait(r) {
			continue
		}
		a.send(w)
		return
	}
}

// answer keeps the answer to a request until it is sent.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()) // the client may be gone
}
