package runapi

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cancel asks a run to stop. Repeating the request changes nothing.
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
		// The UID limits the patch to the object that was read: another one may have got
		// its name meanwhile.
		patch := fmt.Appendf(nil, `{"metadata": {"uid": %q}, "spec": {"cancel": true}}`, run.UID)
		if err := s.o.Client.Patch(r.Context(), run, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	answerRun(w, http.StatusOK, run)
	return nil
}
