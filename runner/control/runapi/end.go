package runapi

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// finishedBy decodes the event that ends a run; nil for any other event.
func finishedBy(line []byte) *event.RunFinished {
	var e event.Event
	if e.UnmarshalJSON(line) != nil {
		return nil
	}
	if f, ok := e.Data.(event.RunFinished); ok {
		return &f
	}
	return nil
}

// halted reports whether the attempt has ended and cannot be continued.
func (st *stream) halted() bool {
	return st.finished != nil && v1alpha1.Phase(st.finished.Phase) != v1alpha1.PhaseSuspended
}

// over returns the last record of the stream, if the stream is at its end.
func (st *stream) over() *record {
	switch {
	case st.halted() && (st.gone || st.run.Status.Phase.Finished() || st.overdue()):
		return st.ends(st.finished)
	case st.run.Status.Phase.Finished():
		return st.object()
	case st.gone:
		end := st.object()
		end.Phase, end.Reason, end.Message = v1alpha1.PhaseCancelled, string(reason.Cancelled), "the run was deleted"
		end.ExitCode = new(reason.Cancelled.ExitCode())
		return end
	case !st.want.follow && st.finished != nil && (!st.halted() || st.run.Spec.BackoffLimit == 0):
		return st.ends(st.finished)
	case !st.want.follow:
		return st.object()
	}
	return nil
}

// overdue reports whether an attempt ended so long ago that its object should show it. A
// client that reads the end of a stream and then the object should not see two states, so
// the stream waits for the object; after this time the journal counts alone. A failed run
// may be tried again, so it is never overdue.
func (st *stream) overdue() bool {
	now := st.s.o.Now()
	if st.since.IsZero() {
		st.since = now
	}
	again := st.run.Spec.BackoffLimit > 0 && v1alpha1.Phase(st.finished.Phase) == v1alpha1.PhaseFailed
	return !again && now.Sub(st.since) >= st.s.o.statusPatience
}

// ends is the end as recorded in the journal.
func (st *stream) ends(f *event.RunFinished) *record {
	return &record{
		Type: recordEnd, Next: st.next, Attempt: st.attempt, Phase: v1alpha1.Phase(f.Phase), Reason: f.Reason, Message: f.Message, ExitCode: &f.ExitCode,
	}
}

// object is the end as recorded in the object.
func (st *stream) object() *record {
	r := st.standing(recordEnd)
	r.Next = st.next
	if st.run.Status.Phase.Finished() {
		r.ExitCode = new(reason.Reason(r.Reason).ExitCode())
	}
	return &r
}

// standing returns a record with the state of the run in its object.
func (st *stream) standing(t event.Type) record {
	r := record{Type: t, Phase: st.run.Status.Phase}
	if r.Phase == "" {
		r.Phase = v1alpha1.PhasePending
	}
	if c := meta.FindStatusCondition(st.run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		r.Reason, r.Message = c.Reason, c.Message
	}
	return r
}
