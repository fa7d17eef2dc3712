package apitest

import (
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func statusApart(t *testing.T, k *client) {
	o := k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1}, status: {phase: Forged}}`)
	if got := field(t, o, "status", "phase"); got != "" {
		t.Errorf("a create wrote the status: %s", got)
	}
	set(t, o, "Done", "status", "phase")
	set(t, o, int64(2), "spec", "size")
	o, err := k.on("samples").UpdateStatus(k.ctx, o, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size, phase := field(t, o, "spec", "size"), field(t, o, "status", "phase"); size != "1" || phase != "Done" {
		t.Errorf("after a write of the status: size %s, phase %s", size, phase)
	}
	set(t, o, "Forged", "status", "phase")
	set(t, o, int64(3), "spec", "size")
	if o, err = k.on("samples").Update(k.ctx, o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if size, phase := field(t, o, "spec", "size"), field(t, o, "status", "phase"); size != "3" || phase != "Done" {
		t.Errorf("after a write of the spec: size %s, phase %s", size, phase)
	}
}

func generation(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1}}`)
	for _, c := range []struct {
		patch string
		sub   []string
		want  int64
	}{
		{`{"metadata": {"labels": {"a": "b"}}}`, nil, 1},
		{`{"status": {"phase": "x"}}`, []string{"status"}, 1},
		{`{"spec": {"size": 1}}`, nil, 1},
		{`{"spec": {"size": 2}}`, nil, 2},
	} {
		o, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(c.patch), metav1.PatchOptions{}, c.sub...)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.GetGeneration(); got != c.want {
			t.Errorf("after %s: generation %d, want %d", c.patch, got, c.want)
		}
	}
}

func stale(t *testing.T, k *client) {
	old := k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1}}`)
	fresh := old.DeepCopy()
	set(t, fresh, int64(2), "spec", "size")
	if _, err := k.on("samples").Update(k.ctx, fresh, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	set(t, old, int64(3), "spec", "size")
	if _, err := k.on("samples").Update(k.ctx, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

func appliers(t *testing.T, k *client) {
	apply := func(manager, text string, force bool) (*unstructured.Unstructured, error) {
		return k.on("samples").Apply(k.ctx, "s", object(t, text), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	const first, second = `{kind: Sample, metadata: {name: s}, spec: {color: green, size: 1}}`, `{kind: Sample, metadata: {name: s}, spec: {color: blue}}`
	if _, err := apply("one", first, false); err != nil {
		t.Fatal(err)
	}
	if _, err := apply("two", second, false); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"one"`) || !strings.Contains(err.Error(), ".spec.color") {
		t.Errorf("the second manager: %v", err)
	}
	if _, err := apply("two", `{kind: Sample, metadata: {name: s}, spec: {limit: 9}}`, false); err != nil {
		t.Errorf("another field: %v", err)
	}
	o, err := apply("two", second, true)
	if err != nil {
		t.Fatal(err)
	}
	if color, size, limit := field(t, o, "spec", "color"), field(t, o, "spec", "size"), field(t, o, "spec", "limit"); color != "blue" || size != "1" || limit != "" {
		t.Errorf("by force: color %s, size %s, limit %s; a field that its manager drops goes", color, size, limit)
	}
}

func sharedLists(t *testing.T, k *client) {
	for manager, item := range map[string]string{"one": "a", "two": "b"} {
		o := object(t, `{kind: Sample, metadata: {name: s}, spec: {items: [{name: `+item+`, value: x}]}}`)
		if _, err := k.on("samples").Apply(k.ctx, "s", o, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	o, err := k.on("samples").Get(k.ctx, "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if items, _, _ := unstructured.NestedSlice(o.Object, "spec", "items"); len(items) != 2 {
		t.Errorf("items %v", items)
	}
}

func selects(t *testing.T, k *client) {
	for i, color := range []string{"red", "green", "red"} {
		k.create(t, `{kind: Sample, metadata: {name: s`+strconv.Itoa(i)+`}, spec: {color: `+color+`}}`)
	}
	for selector, want := range map[string]int{"spec.color=red": 2, "spec.color=green": 1, "spec.color!=red": 1, "spec.color=blue": 0, "metadata.name=s1": 1} {
		list, err := k.on("samples").List(k.ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("%s: %d, want %d", selector, len(list.Items), want)
		}
	}
	if _, err := k.on("samples").List(k.ctx, metav1.ListOptions{FieldSelector: "spec.size=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is not selectable: %v", err)
	}
}

func labels(t *testing.T, k *client) {
	for name, team := range map[string]string{"a": "web", "b": "ops", "c": "web"} {
		k.create(t, `{kind: Sample, metadata: {name: `+name+`, labels: {team: `+team+`}}}`)
	}
	count := func(selector string) int {
		list, err := k.on("samples").List(k.ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if got := count("team in (web)"); got != 2 {
		t.Errorf("selected %d, want 2", got)
	}
	if err := k.on("samples").DeleteCollection(k.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "team=web"}); err != nil {
		t.Fatal(err)
	}
	if got := count(""); got != 1 {
		t.Errorf("left %d, want 1", got)
	}
}

func watchResumes(t *testing.T, k *client) {
	list, err := k.on("samples").List(k.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1}}`)
	changed, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(`{"spec": {"size": 2}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.on("samples").Delete(k.ctx, "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	k.watch(t, list.GetResourceVersion(), "ADDED s 1", "MODIFIED s 2", "DELETED s 2")
	k.watch(t, changed.GetResourceVersion(), "DELETED s 2")
}

// watchBegins: what is there, then a mark that it was all, then what happens.
func watchBegins(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1}}`)
	all, seconds := true, int64(patience.Seconds())
	w, err := k.on("samples").Watch(k.ctx, metav1.ListOptions{
		SendInitialEvents: &all, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: &seconds,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got := []string{}
	for e := range w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			t.Fatal(e.Object)
		}
		said := string(e.Type) + " " + o.GetName()
		if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			said += "that was all"
			k.create(t, `{kind: Sample, metadata: {name: later}}`)
		}
		if got = append(got, said); o.GetName() == "later" {
			break
		}
	}
	if g, w := strings.Join(got, ", "), "ADDED s, BOOKMARK that was all, ADDED later"; g != w {
		t.Errorf("got %s, want %s", g, w)
	}
}

func watchSelects(t *testing.T, k *client) {
	seconds := int64(patience.Seconds())
	list, err := k.on("samples").List(k.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.on("samples").Watch(k.ctx, metav1.ListOptions{FieldSelector: "status.phase=Open", ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	k.create(t, `{kind: Sample, metadata: {name: s}}`)
	for _, phase := range []string{"Open", "Open", "Closed", "Open"} {
		patch := `{"metadata": {"labels": {"a": null}}, "status": {"phase": "` + phase + `", "count": null}}`
		if _, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	got := []string{}
	for e := range w.ResultChan() {
		if got = append(got, string(e.Type)); len(got) == 3 {
			break
		}
	}
	// The second write changes nothing, and sends no event.
	if g, w := strings.Join(got, ", "), "ADDED, DELETED, ADDED"; g != w {
		t.Errorf("got %s, want %s", g, w)
	}
}

// propagation: the server records the propagation policy of a delete, and does
// nothing more.
func propagation(t *testing.T, k *client) {
	for policy, want := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationBackground: "",
	} {
		k.create(t, `{kind: Sample, metadata: {name: s}}`)
		if err := k.on("samples").Delete(k.ctx, "s", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		o, err := k.on("samples").Get(k.ctx, "s", metav1.GetOptions{})
		if want == "" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s: it is still there: %v", policy, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		if f := o.GetFinalizers(); len(f) != 1 || f[0] != want || o.GetDeletionTimestamp() == nil {
			t.Errorf("%s: finalizers %v, deleted %v", policy, f, o.GetDeletionTimestamp())
		}
		if _, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// refusals are requests that come to nothing.
func refusals(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s}}`)
	const base = "/apis/agentctl.dev/v1alpha1/namespaces/NS/samples"
	for _, c := range []struct {
		name, method, path, kind, body string
		code                           int
	}{
		{"an update of nothing", "PUT", base + "/none", "application/json", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Sample", "metadata": {"name": "none", "resourceVersion": "1"}}`, 404},
		{"an update without a version", "PUT", base + "/s", "application/json", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Sample", "metadata": {"name": "s"}}`, 422},
		{"an update by another name", "PUT", base + "/s", "application/json", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Sample", "metadata": {"name": "t"}}`, 400},
		{"another kind", "POST", base, "application/json", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Run", "metadata": {"name": "x"}}`, 422},
		{"another version", "POST", base, "application/json", `{"apiVersion": "agentctl.dev/v2", "kind": "Sample", "metadata": {"name": "x"}}`, 400},
		{"another namespace", "POST", base, "application/json", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Sample", "metadata": {"name": "x", "namespace": "other"}}`, 400},
		{"a version that is not served", "GET", "/apis/agentctl.dev/v9/samples", "", "", 404},
		{"a kind that is not served", "GET", "/apis/agentctl.dev/v1alpha1/spoons", "", "", 404},
		{"a subresource that is not served", "GET", base + "/s/scale", "", "", 404},
		{"a patch of no status", "PATCH", base + "/none/status", "application/merge-patch+json", `{}`, 404},
		{"a patch of a sort that nobody knows", "PATCH", base + "/s", "application/json", `{}`, 415},
		{"a patch that is none", "PATCH", base + "/s", "application/json-patch+json", `{}`, 400},
		{"a patch whose test fails", "PATCH", base + "/s", "application/json-patch+json", `[{"op": "test", "path": "/spec", "value": 1}]`, 422},
		{"an apply by nobody", "PATCH", base + "/s", "application/apply-patch+yaml", `{"apiVersion": "agentctl.dev/v1alpha1", "kind": "Sample"}`, 422},
		{"a label that is none", "PATCH", base + "/s", "application/merge-patch+json", `{"metadata": {"labels": {"a b": "c"}}}`, 422},
		{"notes without end", "PATCH", base + "/s", "application/merge-patch+json", `{"metadata": {"annotations": {"a": "` + strings.Repeat("x", 300<<10) + `"}}}`, 422},
		{"a change of the uid", "PATCH", base + "/s", "application/merge-patch+json", `{"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}`, 422},
		{"an owner without a uid", "PATCH", base + "/s", "application/merge-patch+json", `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": ""}]}}`, 422},
		{"a selector that is none", "GET", base + "?labelSelector=a%20b%20c", "", "", 400},
		{"a form", "POST", base, "application/x-www-form-urlencoded", `a=b`, 415},
		{"no JSON", "POST", base, "application/json", `{{`, 400},
		{"nothing", "POST", base, "application/json", ``, 400},
	} {
		got := 0
		k.rest().Verb(c.method).RequestURI(strings.Replace(c.path, "NS", k.namespace, 1)).SetHeader("Content-Type", c.kind).Body([]byte(c.body)).Do(k.ctx).StatusCode(&got)
		if got != c.code {
			t.Errorf("%s: %d, want %d", c.name, got, c.code)
		}
	}
}

// watch reads a watch from a version on until it has seen as many events.
func (c *client) watch(t *testing.T, version string, want ...string) {
	t.Helper()
	seconds := int64(patience.Seconds())
	w, err := c.on("samples").Watch(c.ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got := []string{}
	for e := range w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			t.Fatalf("from %s: %v", version, e.Object)
		}
		if got = append(got, string(e.Type)+" "+o.GetName()+" "+field(t, o, "spec", "size")); len(got) == len(want) {
			break
		}
	}
	if g, w := strings.Join(got, ", "), strings.Join(want, ", "); g != w {
		t.Errorf("from %s: %s, want %s", version, g, w)
	}
}

func finalizers(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s, finalizers: [agentctl.dev/test]}}`)
	if err := k.on("samples").Delete(k.ctx, "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := k.on("samples").Get(k.ctx, "s", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("it went before its finalizer: %v", err)
	}
	if o.GetDeletionTimestamp() == nil {
		t.Error("it is not being deleted")
	}
	if _, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(`{"metadata": {"finalizers": ["agentctl.dev/test", "agentctl.dev/more"]}}`), metav1.PatchOptions{}); err == nil {
		t.Error("an object that is going got another finalizer")
	}
	if _, err := k.on("samples").Patch(k.ctx, "s", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.on("samples").Get(k.ctx, "s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}

func dryRun(t *testing.T, k *client) {
	o := object(t, `{kind: Sample, metadata: {name: s}}`)
	got, err := k.on("samples").Create(k.ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if color := field(t, got, "spec", "color"); color != "" {
		t.Errorf("a default below a missing object: %q", color)
	}
	if _, err := k.on("samples").Get(k.ctx, "s", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was kept: %v", err)
	}
}

func patches(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s}, spec: {size: 1, limit: 5}}`)
	for _, c := range []struct {
		kind        types.PatchType
		patch, want string
	}{
		{types.MergePatchType, `{"spec": {"size": 2, "limit": null}}`, "color: red\nsize: 2"},
		{types.JSONPatchType, `[{"op": "test", "path": "/spec/size", "value": 2}, {"op": "replace", "path": "/spec/size", "value": 3}]`, "color: red\nsize: 3"},
	} {
		o, err := k.on("samples").Patch(k.ctx, "s", c.kind, []byte(c.patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := field(t, o, "spec"); got != c.want {
			t.Errorf("after %s:\n%s\nwant\n%s", c.patch, got, c.want)
		}
	}
	if _, err := k.on("samples").Patch(k.ctx, "s", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("a strategic merge patch of a custom resource: %v", err)
	}
}

func pages(t *testing.T, k *client) {
	for i := range 5 {
		k.create(t, `{kind: Sample, metadata: {name: s`+strconv.Itoa(i)+`}}`)
	}
	seen, o := 0, metav1.ListOptions{Limit: 2}
	for {
		list, err := k.on("samples").List(k.ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(list.Items)
		if o.Continue = list.GetContinue(); o.Continue == "" {
			break
		}
	}
	if seen != 5 {
		t.Errorf("saw %d, want 5", seen)
	}
}

func names(t *testing.T, k *client) {
	k.create(t, `{kind: Sample, metadata: {name: s}}`)
	if _, err := k.on("samples").Create(k.ctx, object(t, `{kind: Sample, metadata: {name: s}}`), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: %v", err)
	}
	if o := k.create(t, `{kind: Sample, metadata: {generateName: s-}}`); !strings.HasPrefix(o.GetName(), "s-") || len(o.GetName()) != 7 {
		t.Errorf("made the name %q", o.GetName())
	}
	for _, name := range []string{"A", "a/b", "..", "a b", strings.Repeat("x", 254)} {
		o := object(t, `{kind: Sample}`)
		o.SetName(name)
		if _, err := k.on("samples").Create(k.ctx, o, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func preconditions(t *testing.T, k *client) {
	o := k.create(t, `{kind: Sample, metadata: {name: s}}`)
	other := types.UID("00000000-0000-0000-0000-000000000000")
	if err := k.on("samples").Delete(k.ctx, "s", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("another uid: %v", err)
	}
	uid := o.GetUID()
	if err := k.on("samples").Delete(k.ctx, "s", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		t.Errorf("its uid: %v", err)
	}
}

func set(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
