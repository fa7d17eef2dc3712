package runapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	kjson "sigs.k8s.io/json"
)

const (
	// maxPrompt bounds the body of a request with a prompt or a message, maxBody any
	// other.
	maxPrompt = 2 << 20
	maxBody   = 1 << 20
	// bodyPatience is how long a body may take to arrive.
	bodyPatience = 15 * time.Second
)

// decode reads the JSON body of a request, and rejects unknown fields. A form, which a
// page of any origin can send, is refused before it is read.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal(http.StatusUnsupportedMediaType, "the body has to be of the type application/json, not %q", r.Header.Get("Content-Type"))
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(s.o.Now().Add(s.o.bodyPatience)) // the recorder of a test does not support it
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		_ = c.SetReadDeadline(time.Time{})
	} // after an error the deadline stays: otherwise the server would wait for the rest of the body before it answers
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return refusal(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refusal(http.StatusRequestTimeout, "the body did not arrive within %s", s.o.bodyPatience)
	}
	if err != nil {
		return refusal(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	strict, err := kjson.UnmarshalStrict(text, into)
	if err = errors.Join(append([]error{err}, strict...)...); err != nil {
		return refusal(http.StatusBadRequest, "the body is not what is expected: %v", err)
	}
	return nil
}
