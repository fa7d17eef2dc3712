package control

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// maxMessage bounds the message of a condition.
const maxMessage = 2048

// same reports whether a condition is set already, ignoring its time.
func same(old *metav1.Condition, c metav1.Condition) bool {
	return old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message && old.ObservedGeneration == c.ObservedGeneration
}

// withCondition returns the conditions with one set. The transition time changes
// with the status alone.
func (b *base) withCondition(old []metav1.Condition, c metav1.Condition) []metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(b.now())
	conditions := append([]metav1.Condition(nil), old...)
	meta.SetStatusCondition(&conditions, c)
	return conditions
}

// ready writes the state of a long-lived object, if it has changed.
func (b *base) ready(ctx context.Context, obj client.Object, v readiness, more map[string]any) error {
	c := v.condition(v1alpha1.ConditionReady, obj)
	old := meta.FindStatusCondition(conditionsOf(obj), v1alpha1.ConditionReady)
	if same(old, c) && !differs(obj, more) {
		return nil
	}
	status := map[string]any{"observedGeneration": obj.GetGeneration()}
	maps.Copy(status, more)
	if err := b.applyStatus(ctx, obj, status, b.withCondition(conditionsOf(obj), c), ""); err != nil {
		return err
	}
	if old == nil || string(old.Status) != string(c.Status) || old.Reason != c.Reason {
		message := c.Message
		if message == "" && v.status == metav1.ConditionTrue {
			message = "Ready"
		}
		b.events.Record(ctx, obj, v.why, message)
	}
	return nil
}

// differs reports whether the further fields of a status differ.
func differs(obj client.Object, more map[string]any) bool {
	digest, ok := more["digest"].(string)
	if !ok {
		return false
	}
	switch o := obj.(type) {
	case *v1alpha1.Tool:
		return digest != o.Status.Digest
	case *v1alpha1.Skill:
		return digest != o.Status.Digest
	}
	return false
}

// applyStatus writes a status by server-side apply, and never creates an object. If obj
// has no resource version, the status is written even if the object has changed since it
// was read.
func (b *base) applyStatus(ctx context.Context, obj client.Object, status map[string]any, conditions []metav1.Condition, version string) error {
	list := make([]any, len(conditions))
	for i := range conditions {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("write the status of %s: %w", docName(kindOf(obj), obj.GetName()), err)
		}
		list[i] = c
	}
	status["conditions"] = list
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kindOf(obj)))
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	u.SetResourceVersion(version)
	err := b.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner(kindOf(obj)), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %s: %w", docName(kindOf(obj), obj.GetName()), err)
	}
	return nil
}

// owner is the name under which a controller owns fields, in general that of a kind.
func owner(kind string) client.FieldOwner {
	return client.FieldOwner("agentctl-" + strings.ToLower(kind) + "-controller")
}
