package control

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// CoreSink turns what happens into core events. record adds a name and a time, and must
// not block.
func CoreSink(record func(*corev1.Event)) EventSink {
	return SinkFunc(func(_ context.Context, obj client.Object, why reason.Reason, message string) {
		record(&corev1.Event{
			InvolvedObject: regarding(obj), Type: severity(why), Reason: string(why), Message: message,
			Source: corev1.EventSource{Component: string(owner(kindOf(obj)))}, ReportingController: reporter(obj),
		})
	})
}

// regarding is what an event is about.
func regarding(obj client.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
}

// severity is the type of an event: a change that a user asked for is Normal.
func severity(why reason.Reason) string {
	if slices.Contains([]reason.Reason{reason.Accepted, reason.Completed, reason.Cancelled}, why) {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// reporter names the controller that reports on an object.
func reporter(obj client.Object) string {
	return v1alpha1.GroupVersion.Group + "/" + strings.ToLower(kindOf(obj)) + "-controller"
}
