package fallback

import (
	"errors"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// attempts counts the requests to one model by its retries.
type attempts struct {
	emit    func(message.Delta) error
	last    *message.Retry
	stopped bool
}

// watch passes a delta on. An error of the watcher ends everything: it is not a failure of
// the model.
func (a *attempts) watch(d message.Delta) error {
	if d.Kind == message.DeltaRetry {
		a.last = d.Retry
	}
	err := a.emit(d)
	a.stopped = a.stopped || err != nil
	return err
}

// turn is the retry that announces the next model.
func (a *attempts) turn(err error, next string) *message.Retry {
	r := &message.Retry{Attempt: 1, Attempts: 1, Class: "unavailable", Error: err.Error(), Fallback: next}
	if a.last != nil {
		r.Attempt, r.Attempts = a.last.Attempt+1, a.last.Attempts
	}
	if e, ok := errors.AsType[*model.Error](err); ok {
		// The attempt and the model are in fields of their own.
		r.Class, r.Error = e.Class, e.Error()
	}
	return r
}
