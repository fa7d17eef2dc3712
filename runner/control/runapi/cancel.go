package runapi

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cancel asks a run to stop. To ask twice is to ask once.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	if err := s.decode(w, r, maxBody, &struct{}{}); err != nil {
		return err
	}
	run, err := s.run(r)
	if err != nil {
		return err
	}
	if run.Status.Phase.Finished() {
		return errEnded(run)
	}
	if !run.Spec.Cancel {
		// The object that was looked at, and none that has come under its name.
		patch := fmt.Appendf(nil, `{"metadata": {"uid": %q}, "spec": {"cancel": true}}`, run.UID)
		if err := s.o.Client.Patch(r.Context(), run, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	answerRun(w, http.StatusOK, run)
	return nil
}
