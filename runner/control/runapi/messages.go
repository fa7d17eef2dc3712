package runapi

import (
	"errors"
	"net/http"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/runs"
)

// messageRequest is the body of a message to a run.
type messageRequest struct {
	Text string `json:"text"`
}

// messageAnswer returns the id of the stored message.
type messageAnswer struct {
	ID string `json:"id"`
}

// messages stores a message for a run, which reads it before its next request to the
// model.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	m := &messageRequest{}
	if err := s.decode(w, r, maxPrompt, m); err != nil {
		return err
	}
	switch {
	case m.Text == "":
		return refusal(http.StatusUnprocessableEntity, "text: a message has at least one character")
	case len(m.Text) > runs.MessageLimit:
		return refusal(http.StatusUnprocessableEntity, "text: %d bytes, at most %d", len(m.Text), runs.MessageLimit)
	}
	run, err := s.run(r)
	if err != nil {
		return err
	}
	if run.Status.Phase.Finished() {
		return errEnded(run)
	}
	sent, err := runs.Send(r.Context(), runs.SendOptions{
		State: s.o.State, Ref: s.o.RunID(run, max(1, run.Status.Attempt)), Text: m.Text, By: s.o.Caller(r.Context()).Name,
	})
	if usage, ok := errors.AsType[*reason.UsageError](err); ok {
		return errConflict(run, "%w", usage.Err)
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusAccepted, messageAnswer{sent.ID})
	return nil
}
