package embedded

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// admitter refuses objects that cannot work on this server: it has no Secrets,
// so nothing can refer to one.
type admitter struct{}

// Handles implements admission.Interface.
func (admitter) Handles(o admission.Operation) bool {
	return o == admission.Create || o == admission.Update
}

// Validate implements admission.ValidationInterface.
func (admitter) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok || a.GetKind().Group != group || a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Create && a.GetResource().Resource == runResource {
		Note(ctx, AuditRun, obj.GetName()) // only now it has a name that the server chose
	}
	var found field.ErrorList
	secrets(field.NewPath("spec"), obj.Object["spec"], &found)
	if len(found) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: group, Kind: a.GetKind().Kind}, a.GetName(), found)
}

// secrets finds what refers to a Secret below a value: valueFrom.secretKeyRef.
func secrets(path *field.Path, value any, found *field.ErrorList) {
	switch v := value.(type) {
	case map[string]any:
		if from, ok := v["valueFrom"].(map[string]any); ok && from["secretKeyRef"] != nil {
			*found = append(*found, field.Forbidden(path.Child("valueFrom", "secretKeyRef"), "this control plane has no Secrets: use env, file or exec"))
		}
		for name, part := range v {
			secrets(path.Child(name), part, found)
		}
	case []any:
		for i, part := range v {
			secrets(path.Index(i), part, found)
		}
	}
}
