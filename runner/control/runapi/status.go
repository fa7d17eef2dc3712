package runapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// errorf is fmt.Errorf for errors whose text is all that matters.
func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// resource names one of our resources.
func resource(plural string) schema.GroupResource {
	return schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: plural}
}

// reasons are the Kubernetes reasons for the status codes used here.
var reasons = map[int32]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusNotAcceptable:         metav1.StatusReasonNotAcceptable,
	http.StatusRequestTimeout:        metav1.StatusReasonTimeout,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusUnprocessableEntity:   metav1.StatusReasonInvalid,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// refusal is an error that is answered with the given status code.
func refusal(code int32, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reasons[code], Message: fmt.Sprintf(format, args...),
	}}
}

// later is a refusal of a request that may be repeated after some seconds.
func later(code int32, seconds int32, format string, args ...any) *apierrors.StatusError {
	e := refusal(code, format, args...)
	e.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return e
}

// errConflict refuses a request that the state of a run does not allow.
func errConflict(run *v1alpha1.Run, format string, args ...any) error {
	return apierrors.NewConflict(resource("runs"), run.Name, errorf(format, args...))
}

// errEnded refuses a request to a run that has ended.
func errEnded(run *v1alpha1.Run) error {
	return errConflict(run, "the run has ended: its phase is %s", run.Status.Phase)
}

// fail writes an error as the API server does.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		if r.Context().Err() == nil {
			s.o.Log.Error("a request failed", "path", r.URL.Path, "error", err)
		}
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	answer(w, int(status.Code), status)
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// answerRun writes a Run object as the API server does.
func answerRun(w http.ResponseWriter, code int, run *v1alpha1.Run) {
	run.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindRun))
	run.SetManagedFields(nil)
	answer(w, code, client.Object(run))
}
