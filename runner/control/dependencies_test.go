package control

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// late is a cache to which policies and one tool have not come yet.
type late struct {
	client.Client
	tool string
}

func (l *late) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.Tool); ok && key.Name == l.tool {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "tools"}, key.Name)
	}
	return l.Client.Get(ctx, key, obj, o...)
}

func (l *late) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.PolicyList); ok {
		return nil
	}
	return l.Client.List(ctx, list, o...)
}

func TestARunIsHeldByWhatTheCacheDoesNotKnowYet(t *testing.T) {
	const (
		deny = head + "kind: Policy\nmetadata: {name: strict}\nspec: {appliesTo: {agentSelector: {matchLabels: {team: web}}}, rules: [{name: never, match: {tools: [echo]}, action: deny}]}\n"
		bash = head + "kind: Tool\nmetadata: {name: bash}\nspec: {risk: R3, isolation: {minimum: None}, source: {builtin: {name: bash}}}\n"
	)
	with := strings.NewReplacer("tools: [{name: echo}]", "tools: [{name: echo}, {name: bash}]").Replace
	b := newBench(t, with(workerYAML)+sep+deny+sep+bash+sep+runYAML("one", "")).settled()
	b.Client = &late{b.Client, "bash"}
	r := newRunReconciler(b.base, b.executor)
	again := b.step(r, "one")
	if len(b.executor.started) != 0 || again.RequeueAfter <= 0 || b.run("one").Status.Phase != v1alpha1.PhasePending {
		t.Fatalf("it began with %d of what nobody has looked at: %+v, %+v", len(b.executor.started), again, b.run("one").Status)
	}
	for kind, name := range map[string]string{v1alpha1.KindPolicy: "strict", v1alpha1.KindTool: "bash"} {
		obj := newObject(kind)
		if err := b.live.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, obj); err != nil {
			t.Fatal(err)
		}
		if err := b.ready(t.Context(), obj, accepted, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.step(r, "one")
	if len(b.executor.started) != 1 {
		t.Fatalf("it does not begin: %+v", b.run("one").Status)
	}
	made := map[string]bool{}
	for _, d := range b.executor.started[0].Documents {
		made[d.Name] = true
	}
	for _, want := range []string{docName(v1alpha1.KindPolicy, "strict"), docName(v1alpha1.KindTool, "bash")} {
		if !made[want] {
			t.Errorf("it began without %s: %v", want, made)
		}
	}
}
