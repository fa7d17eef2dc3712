package control

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
)

// kindOf names the kind of one of our objects; a typed client leaves it out.
func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *v1alpha1.Agent:
		return v1alpha1.KindAgent
	case *v1alpha1.Model:
		return v1alpha1.KindModel
	case *v1alpha1.Tool:
		return v1alpha1.KindTool
	case *v1alpha1.Policy:
		return v1alpha1.KindPolicy
	case *v1alpha1.Skill:
		return v1alpha1.KindSkill
	case *v1alpha1.Workspace:
		return v1alpha1.KindWorkspace
	case *v1alpha1.Run:
		return v1alpha1.KindRun
	case *v1alpha1.Approval:
		return v1alpha1.KindApproval
	case *v1alpha1.Test:
		return v1alpha1.KindTest
	}
	return ""
}

// conditionsOf are those in the status of an object.
func conditionsOf(obj client.Object) []metav1.Condition {
	switch o := obj.(type) {
	case *v1alpha1.Agent:
		return o.Status.Conditions
	case *v1alpha1.Model:
		return o.Status.Conditions
	case *v1alpha1.Tool:
		return o.Status.Conditions
	case *v1alpha1.Policy:
		return o.Status.Conditions
	case *v1alpha1.Skill:
		return o.Status.Conditions
	case *v1alpha1.Workspace:
		return o.Status.Conditions
	case *v1alpha1.Run:
		return o.Status.Conditions
	case *v1alpha1.Test:
		return o.Status.Conditions
	}
	return nil
}

func specOf(obj client.Object) any {
	switch o := obj.(type) {
	case *v1alpha1.Agent:
		return o.Spec
	case *v1alpha1.Model:
		return o.Spec
	case *v1alpha1.Tool:
		return o.Spec
	case *v1alpha1.Policy:
		return o.Spec
	case *v1alpha1.Skill:
		return o.Spec
	case *v1alpha1.Workspace:
		return o.Spec
	case *v1alpha1.Run:
		return o.Spec
	case *v1alpha1.Test:
		return o.Spec
	}
	return nil
}

// docName is what findings call an object.
func docName(kind, name string) string { return strings.ToLower(kind) + "/" + name }

// document is an object as its author wrote it: without what the server keeps.
func document(obj client.Object) (runner.Document, error) {
	kind := kindOf(obj)
	meta := map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace()}
	if l := obj.GetLabels(); len(l) > 0 {
		meta["labels"] = l
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": meta, "spec": specOf(obj),
	})
	if err != nil {
		return runner.Document{}, fmt.Errorf("write %s as a manifest: %w", docName(kind, obj.GetName()), err)
	}
	return runner.Document{Name: docName(kind, obj.GetName()), Text: raw}, nil
}

func newObject(kind string) client.Object {
	switch kind {
	case v1alpha1.KindModel:
		return &v1alpha1.Model{}
	case v1alpha1.KindTool:
		return &v1alpha1.Tool{}
	case v1alpha1.KindPolicy:
		return &v1alpha1.Policy{}
	case v1alpha1.KindSkill:
		return &v1alpha1.Skill{}
	case v1alpha1.KindWorkspace:
		return &v1alpha1.Workspace{}
	case v1alpha1.KindRun:
		return &v1alpha1.Run{}
	case v1alpha1.KindTest:
		return &v1alpha1.Test{}
	}
	return &v1alpha1.Agent{}
}
