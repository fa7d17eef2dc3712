package embedded

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// runResource is the resource of the kind Run.
const runResource = "runs"

// inputsChanged finds an update that changes the inputs of a Run. The definition of
// the kind has a rule for the other fields that do not change; a rule cannot read
// inputs, because they have no schema.
func inputsChanged(object, old *unstructured.Unstructured) field.ErrorList {
	after, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "inputs") // a spec that is not an object is refused by the schema
	before, _, _ := unstructured.NestedFieldNoCopy(old.Object, "spec", "inputs")
	if equality.Semantic.DeepEqual(after, before) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "inputs"),
		"the spec of a Run is immutable except suspend, cancel and ttlAfterFinished: delete the Run and create it again, or create one with another name")}
}
