package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/inbox"
)

// Request is an answer that another process left for a run. It takes no effect by itself:
// the run reads it, checks it, and records the result.
type Request struct {
	// ID is unique; each request counts once.
	ID string `json:"id"`
	// Run and Call are what is answered, Binding the question as it was shown:
	// any difference makes another question.
	Run     string `json:"run"`
	Call    string `json:"call"`
	Binding string `json:"binding"`
	// State is approved or rejected.
	State message.ApprovalState `json:"state"`
	Scope message.Scope         `json:"scope,omitempty"`
	By    string                `json:"by"`
	// Reason for a rejection, which the model reads.
	Reason string `json:"reason,omitempty"`
	// Answer to a question that a running call asks; nil for an approval.
	Answer *string `json:"answer,omitempty"`
	// EndRun ends the run with a rejection.
	EndRun bool `json:"endRun,omitempty"`
	// Time in milliseconds since 1970.
	Time int64 `json:"time"`
}

// Check returns what is wrong with a request, independent of the call.
func (r *Request) Check() error {
	switch {
	case !inbox.ValidID(r.ID):
		return fmt.Errorf("its id %q is none", r.ID)
	case r.State != message.Approved && r.State != message.Rejected:
		return fmt.Errorf("it says neither approved nor rejected")
	case r.Scope != "" && r.Scope != message.Once && (r.Scope != message.Always || r.State != message.Approved):
		return fmt.Errorf("its scope %q is none", r.Scope)
	case r.EndRun && r.State != message.Rejected:
		return fmt.Errorf("it ends the run and is not a rejection")
	case r.By == "" || len(r.By) > byLimit || !utf8.ValidString(r.By):
		return fmt.Errorf("it does not say who answered")
	case r.Answer != nil && (r.State != message.Approved || len(*r.Answer) > maxAnswer || !utf8.ValidString(*r.Answer)):
		return fmt.Errorf("its answer is longer than %d bytes, not UTF-8 text, or refused at the same time", maxAnswer)
	case len(r.Reason) > reasonLimit:
		return fmt.Errorf("its reason is longer than %d bytes", reasonLimit)
	case !utf8.ValidString(r.Reason):
		return fmt.Errorf("its reason is no UTF-8 text")
	}
	return nil
}

func parseRequest(raw []byte) (*Request, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	r := &Request{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind it")
	}
	return r, nil
}
