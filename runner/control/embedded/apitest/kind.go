package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/crds"
)

// examples has an object of each kind, with parts that have defaults below them.
var examples = map[string]string{
	"Agent":     `{kind: Agent, metadata: {name: x}, spec: {modelRef: {name: m}, limits: {maxSteps: 7}, loopGuard: {}, tools: [{name: a}]}}`,
	"Approval":  `{kind: Approval, metadata: {name: x}, spec: {runRef: {name: r}, call: c1, tool: shell, callHash: "sha256:0", args: {deep: {er: [1]}}}}`,
	"Model":     `{kind: Model, metadata: {name: x}, spec: {provider: openai, model: m, parameters: {a: {b: null}}}}`,
	"Policy":    `{kind: Policy, metadata: {name: x}, spec: {rules: [{name: a, match: {tools: [a]}, action: allow}]}}`,
	"Run":       `{kind: Run, metadata: {name: x}, spec: {agentRef: {name: a}, inputs: {a: {b: [1, two]}}, workspace: {source: {path: /x}}}}`,
	"Sample":    `{kind: Sample, metadata: {name: x}, spec: {size: 1}}`,
	"Skill":     `{kind: Skill, metadata: {name: x}, spec: {dir: /skills/x}}`,
	"Test":      `{kind: Test, metadata: {name: x}, spec: {agentRef: {name: a}, inputs: {a: {b: 1}}, expect: ["result.steps == 1", {name: ends, expression: "true"}], cases: [{name: c, expect: [x]}]}}`,
	"Tool":      `{kind: Tool, metadata: {name: x}, spec: {source: {exec: {command: [cat]}}, isolation: {minimum: None}, limits: {}}}`,
	"Workspace": `{kind: Workspace, metadata: {name: x}, spec: {source: {path: /x}}}`,
}

// definitions are the CustomResourceDefinitions of agentctl, by kind.
func definitions(t *testing.T) map[string]*apiextv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*apiextv1.CustomResourceDefinition{}
	for _, text := range crds.Definitions() {
		d := &apiextv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, d); err != nil {
			t.Fatal(err)
		}
		all[d.Spec.Names.Kind] = d
	}
	return all
}

// everyKindHasAnExample ensures that a new kind is in this table.
func everyKindHasAnExample(t *testing.T, k *client) {
	for kind := range definitions(t) {
		if examples[kind] == "" {
			t.Errorf("kind %s has no example: add one", kind)
			continue
		}
		if o := k.create(t, examples[kind]); o.GetUID() == "" || o.GetGeneration() != 1 {
			t.Errorf("%s was made as %v", kind, o.Object["metadata"])
		}
	}
}

// defaultsAlike holds the defaults of the server against those that agentctl fills in.
func defaultsAlike(t *testing.T, k *client) {
	for kind := range definitions(t) {
		want := object(t, examples[kind])
		crds.ApplyDefaults(kind, want.Object)
		got := k.create(t, examples[kind])
		if diff := cmp.Diff(plain(t, want.Object["spec"]), plain(t, got.Object["spec"])); diff != "" {
			t.Errorf("%s: agentctl fills in otherwise than the server (+):\n%s", kind, diff)
		}
	}
}

// plain is a value in the form of JSON, whatever Go types its numbers have.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// statusApartEverywhere: for every kind of this API group, a write to the main
// resource ignores the status.
func statusApartEverywhere(t *testing.T, k *client) {
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Forged", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	for kind := range definitions(t) {
		forged := map[string]any{"conditions": []any{condition}}
		if kind == "Approval" {
			forged = map[string]any{"decision": "approved"}
		}
		o := object(t, examples[kind])
		o.Object["status"] = forged
		got, err := k.on(plural(o)).Create(k.ctx, o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status := field(t, got, "status"); status != "" {
			t.Errorf("a create of a %s wrote the status: %s", kind, status)
		}
		applied := object(t, examples[kind])
		applied.Object["status"] = forged
		for sort, body := range map[types.PatchType]any{
			types.MergePatchType: map[string]any{"status": forged}, types.ApplyPatchType: applied.Object,
		} {
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			force := sort == types.ApplyPatchType
			options := metav1.PatchOptions{FieldManager: "forger"}
			if force {
				options.Force = &force
			}
			got, err := k.on(plural(o)).Patch(k.ctx, "x", sort, text, options)
			if err != nil {
				t.Fatal(err)
			}
			if status := field(t, got, "status"); status != "" {
				t.Errorf("a patch of a %s by %s wrote the status: %s", kind, sort, status)
			}
		}
	}
}

// conditionsMerge: two controllers have a condition each.
func conditionsMerge(t *testing.T, k *client) {
	for kind, d := range definitions(t) {
		if _, ok := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]; !ok {
			continue
		}
		o := k.create(t, examples[kind])
		for _, condition := range []string{"Ready", "Other"} {
			a := object(t, `{kind: `+kind+`, metadata: {name: x}, status: {conditions: [{type: `+condition+`, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`)
			var err error
			if o, err = k.on(plural(o)).ApplyStatus(k.ctx, "x", a, metav1.ApplyOptions{FieldManager: "controller-" + strings.ToLower(condition)}); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		if all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions"); len(all) != 2 {
			t.Errorf("%s: two controllers with a condition each come to %v", kind, all)
		}
	}
}

// columnsOfEveryKind: kubectl get shows the columns of the definition.
func columnsOfEveryKind(t *testing.T, k *client) {
	for kind, d := range definitions(t) {
		o := k.create(t, examples[kind])
		want := []string{"Name"}
		for _, c := range d.Spec.Versions[0].AdditionalPrinterColumns {
			want = append(want, c.Name)
		}
		var table metav1.Table
		if err := json.Unmarshal(k.raw(t, "/apis/agentctl.dev/v1alpha1/namespaces/"+k.namespace+"/"+plural(o), "application/json;as=Table;g=meta.k8s.io;v=v1"), &table); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range table.ColumnDefinitions {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "x" {
			t.Errorf("%s: columns %v, want %v; rows %v", kind, got, want, table.Rows)
		}
	}
}

// selectsByEveryField: each selectable field of a definition selects.
func selectsByEveryField(t *testing.T, k *client) {
	fields := 0
	for kind, d := range definitions(t) {
		o := k.create(t, examples[kind])
		for _, f := range d.Spec.Versions[0].SelectableFields {
			fields++
			path := strings.Split(strings.TrimPrefix(f.JSONPath, "."), ".")
			value := field(t, o, path...)
			for selector, want := range map[string]int{"=" + value: 1, "!=" + value: 0, "=zzz": 0, "!=zzz": 1} {
				list, err := k.on(plural(o)).List(k.ctx, metav1.ListOptions{FieldSelector: strings.Join(path, ".") + selector})
				if err != nil {
					t.Errorf("%s: %v", kind, err)
				} else if len(list.Items) != want {
					t.Errorf("%s by %s%s: %d, want %d", kind, f.JSONPath, selector, len(list.Items), want)
				}
			}
		}
	}
	if fields < 4 {
		t.Errorf("only %d selectable fields found", fields)
	}
}

// shortNames: each kind is found by every name and every category that it has.
func shortNames(t *testing.T, k *client) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(k.raw(t, "/apis/agentctl.dev/v1alpha1", "application/json"), &list); err != nil {
		t.Fatal(err)
	}
	served := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		served[r.Name] = r
	}
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for kind, d := range definitions(t) {
		r := served[d.Spec.Names.Plural]
		slices.Sort(r.Verbs)
		if r.Kind != kind || r.SingularName != d.Spec.Names.Singular || !slices.Equal(r.ShortNames, d.Spec.Names.ShortNames) ||
			!slices.Contains(r.Categories, "agentctl") || !slices.Equal(r.Categories, d.Spec.Names.Categories) || !slices.Equal(r.Verbs, verbs) || !r.Namespaced {
			t.Errorf("%s is served as %+v", kind, r)
		}
		if s := served[d.Spec.Names.Plural+"/status"]; s.Kind != kind {
			t.Errorf("the status of %s is served as %+v", kind, s)
		}
	}
}

// rulesOf collects the messages of every CEL rule below a schema.
func rulesOf(s *apiextv1.JSONSchemaProps, to map[string]bool) {
	for _, r := range s.XValidations {
		to[r.Message] = true
	}
	for _, p := range s.Properties {
		rulesOf(&p, to)
	}
	if s.Items != nil && s.Items.Schema != nil {
		rulesOf(s.Items.Schema, to)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		rulesOf(s.AdditionalProperties.Schema, to)
	}
}

// everyRuleHasItsCase fails when a rule is added to a definition and to no case
// here.
func everyRuleHasItsCase(t *testing.T, _ *client) {
	all := map[string]bool{}
	for _, d := range definitions(t) {
		rulesOf(d.Spec.Versions[0].Schema.OpenAPIV3Schema, all)
	}
	if len(all) < 7 {
		t.Errorf("only %d rules found: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	for message := range all {
		if !slices.ContainsFunc(judged, func(c judgement) bool { return c.want == message }) &&
			!slices.ContainsFunc(transitions, func(c transition) bool { return c.want == message }) {
			t.Errorf("the rule %q is not tried", message)
		}
	}
}

// transition is a change that a rule accepts or rejects by what was there.
type transition struct {
	kind, name string
	sub        []string
	first      string // a merge patch that creates the old state
	change     string
	want       string
}

const (
	question = "a question does not change"
	decision = "a decision does not change"
	request  = "the spec of a Run is immutable except suspend, cancel and ttlAfterFinished: delete the Run and create it again, or create one with another name"
)

var transitions = []transition{
	{"Approval", "the same question", nil, `{}`, `{"spec": {"tool": "shell"}}`, fine},
	{"Approval", "another call", nil, `{}`, `{"spec": {"call": "c2"}}`, question},
	{"Approval", "other arguments", nil, `{}`, `{"spec": {"args": {"deep": null}}}`, question},
	{"Approval", "no arguments", nil, `{}`, `{"spec": {"args": null}}`, question},
	{"Approval", "labels", nil, `{}`, `{"metadata": {"labels": {"a": "b"}}}`, fine},
	{"Approval", "a first decision", []string{"status"}, `{}`, `{"status": {"decision": "approved", "by": "jane"}}`, fine},
	{"Approval", "the same decision", []string{"status"}, `{"status": {"decision": "approved"}}`, `{"status": {"decision": "approved", "reason": "x"}}`, fine},
	{"Approval", "another decision", []string{"status"}, `{"status": {"decision": "rejected"}}`, `{"status": {"decision": "approved"}}`, decision},
	{"Approval", "a decision taken back", []string{"status"}, `{"status": {"decision": "rejected"}}`, `{"status": {"decision": null}}`, decision},
	{"Approval", "a decision that goes with its status", []string{"status"}, `{"status": {"decision": "rejected"}}`, `{"status": null}`, decision},
	{"Approval", "another who decided", []string{"status"}, `{"status": {"decision": "rejected", "by": "jane"}}`, `{"status": {"by": "joe"}}`, decision},
	{"Approval", "a wider decision", []string{"status"}, `{"status": {"decision": "approved", "scope": "Once"}}`, `{"status": {"scope": "Always"}}`, decision},
	{"Approval", "a decision that is taken", []string{"status"}, `{"status": {"decision": "approved", "by": "jane"}}`, `{"status": {"takenAt": "2026-01-01T00:00:00Z"}}`, fine},
	{"Run", "what may change", nil, `{}`, `{"spec": {"suspend": true, "cancel": true, "ttlAfterFinished": "1h"}}`, fine},
	{"Run", "labels", nil, `{}`, `{"metadata": {"labels": {"a": "b"}}}`, fine},
	{"Run", "another prompt", nil, `{}`, `{"spec": {"prompt": "do something else"}}`, request},
	{"Run", "the plan of a skill", nil, `{}`, `{"spec": {"skillRef": {"name": "s"}}}`, request},
	{"Run", "another agent", nil, `{}`, `{"spec": {"agentRef": {"name": "b"}}}`, request},
	{"Run", "other files", nil, `{}`, `{"spec": {"workspace": {"source": {"path": "/etc"}}}}`, request},
	{"Run", "the same inputs", nil, `{}`, `{"spec": {"inputs": {"a": {"b": [1, "two"]}}}}`, fine},
	{"Run", "other inputs", nil, `{}`, `{"spec": {"inputs": {"a": {"b": [1, "three"]}}}}`, request},
	{"Run", "one input more", nil, `{}`, `{"spec": {"inputs": {"c": null, "d": {}}}}`, request},
	{"Run", "an input under another name", nil, `{}`, `{"spec": {"inputs": {"a": null, "c": {"b": [1, "two"]}}}}`, request},
	{"Run", "other inputs beside what may change", nil, `{}`, `{"spec": {"suspend": true, "inputs": {"a": null, "c": 1}}}`, request},
	{"Run", "no inputs", nil, `{}`, `{"spec": {"inputs": null}}`, request},
	{"Run", "wider limits", nil, `{}`, `{"spec": {"limits": {"maxSteps": 100}}}`, request},
	{"Sample", "the same owner", nil, `{"spec": {"owner": "jane"}}`, `{"spec": {"owner": "jane", "size": 2}}`, fine},
	{"Sample", "another owner", nil, `{"spec": {"owner": "jane"}}`, `{"spec": {"owner": "joe"}}`, "owner cannot change"},
}

// comparesWithTheOld tests the rules that use oldSelf.
func comparesWithTheOld(t *testing.T, k *client) {
	for i, c := range transitions {
		o := object(t, examples[c.kind])
		o.SetName(fmt.Sprintf("t%d", i))
		on := k.on(plural(o))
		if _, err := on.Create(k.ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := on.Patch(k.ctx, o.GetName(), types.MergePatchType, []byte(c.first), metav1.PatchOptions{}, c.sub...); err != nil {
			t.Fatalf("%s, %s: %v", c.kind, c.name, err)
		}
		_, err := on.Patch(k.ctx, o.GetName(), types.MergePatchType, []byte(c.change), metav1.PatchOptions{}, c.sub...)
		switch {
		case c.want == fine && err != nil:
			t.Errorf("%s, %s: %v", c.kind, c.name, err)
		case c.want != fine && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s: got %v, want %q", c.kind, c.name, err, c.want)
		}
	}
}
