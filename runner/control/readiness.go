package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/manifest"
)

// readiness is the state of an object, as its Ready condition shows it.
type readiness struct {
	status  metav1.ConditionStatus
	why     reason.Reason
	message string
	// own: the mistake is in the object itself, not in a dependency.
	own bool
}

var accepted = readiness{status: metav1.ConditionTrue, why: reason.Accepted}

func refused(why reason.Reason, format string, args ...any) readiness {
	return readiness{status: metav1.ConditionFalse, why: why, message: fmt.Sprintf(format, args...)}
}

// condition returns it as a condition of an object in its current generation.
func (v readiness) condition(typ string, obj client.Object) metav1.Condition {
	message := v.message
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return metav1.Condition{Type: typ, Status: v.status, Reason: string(v.why), Message: message, ObservedGeneration: obj.GetGeneration()}
}

// judge returns the state of an object, from its spec and its dependencies. Done is false
// while a dependency has not been judged itself: when it is, the object is processed
// again.
func (b *base) judge(ctx context.Context, obj client.Object) (v readiness, done bool, err error) {
	c, err := b.dependenciesOf(ctx, obj)
	if err != nil {
		return v, false, err
	}
	v, done = c.check(ctx, obj, b.shared)
	return v, done, nil
}

func (c *dependencies) check(ctx context.Context, obj client.Object, shared *runner.Shared) (v readiness, done bool) {
	if len(c.missing) > 0 {
		return refused(reason.ReferenceNotFound, "%s not found in namespace %s", strings.Join(c.missing, ", "), c.namespace), true
	}
	found := c.own(obj, runner.Judge(ctx, c.documents, shared))
	if found.HasErrors() {
		v = refused(whyInvalid(obj, found), "%s", say(found, manifest.Error))
		v.own = true
		return v, true
	}
	waits := false
	for _, need := range c.needs {
		ready := meta.FindStatusCondition(conditionsOf(need), v1alpha1.ConditionReady)
		switch {
		case ready == nil || ready.ObservedGeneration != need.GetGeneration():
			waits = true
		case ready.Status != metav1.ConditionTrue:
			return refused(reason.Reason(ready.Reason), "%s %q is not ready: %s", strings.ToLower(kindOf(need)), need.GetName(), ready.Message), true
		}
	}
	v = accepted
	v.message = say(found, manifest.Warning)
	return v, !waits
}

// own are the findings about an object itself; findings about the others are reported on
// them.
func (c *dependencies) own(obj client.Object, found manifest.Findings) manifest.Findings {
	name := docName(kindOf(obj), obj.GetName())
	return slices.DeleteFunc(found, func(f manifest.Finding) bool { return f.Position.File != name && f.Position.File != "" })
}

func whyInvalid(obj client.Object, found manifest.Findings) reason.Reason {
	if slices.ContainsFunc(found, runner.IsRelativePath) {
		return reason.PathNotAbsolute
	}
	if kindOf(obj) == v1alpha1.KindPolicy {
		return reason.PolicyInvalid
	}
	return reason.SpecInvalid
}

// say formats the findings of a severity as one line.
func say(found manifest.Findings, s manifest.Severity) string {
	var texts []string
	for _, f := range found {
		if f.Severity != s {
			continue
		}
		text := f.Message
		if f.Path != "" {
			text = f.Path + ": " + text
		}
		if f.Suggestion != "" {
			text += " (" + f.Suggestion + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
