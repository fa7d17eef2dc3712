package embedded

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// runResource is the resource of the kind Run.
const runResource = "runs"

// Audit annotations: what a line of the audit log has besides the request.
const (
	// AuditRun is the name of the Run that a request created or decided about.
	AuditRun = group + "/run"
	// AuditDecision is the decision on an Approval, with its scope.
	AuditDecision = group + "/decision"
)

// Note adds a value to the audit line of the request of a context.
func Note(ctx context.Context, key, value string) { audit.AddAuditAnnotation(ctx, key, value) }

// Admit implements admission.MutationInterface: it writes which identity
// created a Run, in place of whatever the client wrote. The client of this
// process creates Runs for other identities, and names them.
func (admitter) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	run, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok || a.GetResource().Group != group || a.GetResource().Resource != runResource || a.GetSubresource() != "" {
		return nil
	}
	switch a.GetOperation() {
	case admission.Create:
		if who := a.GetUserInfo().GetName(); who != user.APIServerUser {
			setStartedBy(run, who)
		}
	case admission.Update:
		if old, ok := a.GetOldObject().(*unstructured.Unstructured); ok && old != nil {
			setStartedBy(run, old.GetAnnotations()[v1alpha1.AnnotationStartedBy])
		}
	case admission.Delete, admission.Connect: // they write no annotations
	}
	return nil
}

func setStartedBy(run *unstructured.Unstructured, who string) {
	all := run.GetAnnotations()
	if all[v1alpha1.AnnotationStartedBy] == who {
		return
	}
	if all == nil {
		all = map[string]string{}
	}
	if all[v1alpha1.AnnotationStartedBy] = who; who == "" {
		delete(all, v1alpha1.AnnotationStartedBy)
	}
	run.SetAnnotations(all)
}
