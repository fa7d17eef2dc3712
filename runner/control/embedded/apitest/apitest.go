// Package apitest has one table of how an API server must handle the kinds of agentctl, for the embedded server and for a cluster's.
package apitest

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/crds"
)

//go:embed sample.yaml
var sample []byte

// patience bounds the wait for what a server does asynchronously.
const patience = time.Minute

// Server is a server under test.
type Server interface {
	// Config is the configuration of clients that may do everything. Its rate of
	// requests must not be limited.
	Config() *rest.Config
}

// ServerFunc lets a function be a Server.
type ServerFunc func() *rest.Config

// Config calls f.
func (f ServerFunc) Config() *rest.Config { return f() }

// Run runs the table. The server may serve the definitions of our kinds already
// or not; they are applied. Each case has a namespace of its own.
func Run(t *testing.T, s Server) {
	config := s.Config()
	apply(t, config)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newClient(t, config)
			c.run(t, k)
			if t.Failed() {
				t.Log("reason: " + c.reason)
			}
		})
	}
}

// behaviour is a line of the table.
type behaviour struct {
	name, reason string
	run          func(*testing.T, *client)
}

var cases = []behaviour{
	{"EveryKindHasAnExample", "a new kind is held to this table, too", everyKindHasAnExample},
	{"Defaults", "a controller reads complete objects, whoever wrote them", defaults},
	{"DefaultsAlike", "agentctl judges a manifest as the server will have it", defaultsAlike},
	{"PrunesUnknownFields", "a field that means nothing must not look as if it did", prunes},
	{"StrictNamesUnknownFields", "a slip of the pen is told to who asks for it", strict},
	{"KeepsFreeFields", "parameters of a model are free", keeps},
	{"RulesAcceptAndReject", "the rules of the definitions are the first line of admission", rules},
	{"EveryRuleHasItsCase", "a rule that is not tried may not do what it says", everyRuleHasItsCase},
	{"ComparesWithTheOld", "a transition rule sees what was there", comparesWithTheOld},
	{"StatusIsApart", "who writes the spec cannot write the status, and the other way round", statusApart},
	{"StatusIsApartEverywhere", "a status is what a controller found, of every kind", statusApartEverywhere},
	{"ConditionsMerge", "two controllers have a condition each", conditionsMerge},
	{"GenerationCountsSpecs", "observedGeneration is compared with it", generation},
	{"StaleUpdateConflicts", "nobody overwrites what they have not seen", stale},
	{"AppliersConflict", "two managers of one field are told about each other", appliers},
	{"AppliersShareLists", "lists by key are merged", sharedLists},
	{"PrinterColumns", "kubectl get shows the columns of the definition", columns},
	{"ColumnsOfEveryKind", "kubectl get shows the columns of each definition", columnsOfEveryKind},
	{"NamesOfEveryKind", "kubectl finds a kind by its short names", shortNames},
	{"SelectsByEveryField", "a selector on a field of a definition works", selectsByEveryField},
	{"SelectsByField", "controllers select by field on the server", selects},
	{"SelectsByLabel", "kubectl -l, and delete -l", labels},
	{"WatchResumes", "a watch that broke goes on where it was", watchResumes},
	{"WatchBegins", "a reflector fills its cache by a watch", watchBegins},
	{"WatchSelects", "what leaves the selection is gone for who watches it", watchSelects},
	{"FinalizersHoldObjects", "what is outside is cleaned before the object goes", finalizers},
	{"DeletesLeaveDependents", "what becomes of dependents is for a collector to see to", propagation},
	{"DryRunKeepsNothing", "kubectl diff asks the server", dryRun},
	{"Patches", "kubectl patch, by its types", patches},
	{"Pages", "long lists are read in pieces", pages},
	{"Refusals", "who errs is told so in the same words", refusals},
	{"Names", "names are unique in a namespace, and made on demand", names},
	{"DeletePreconditions", "an object of the same name is another object", preconditions},
	{"PublishesSchemas", "kubectl explain and editors read them", schemas},
}

// apply applies the definitions and waits until they are established.
func apply(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	force := true
	for _, text := range append(crds.Definitions(), sample) {
		body, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		name := object(t, string(text)).GetName()
		if _, err := c.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, name, types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "apitest", Force: &force}); err != nil {
			t.Fatal(err)
		}
		poll(t, name+" to be served", func() bool {
			crd, err := c.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.RESTClient().Get().AbsPath("/apis/agentctl.dev/v1alpha1/"+crd.Spec.Names.Plural).Param("limit", "1").DoRaw(ctx)
			return err == nil
		})
	}
}

// client works in a namespace.
type client struct {
	ctx       context.Context //nolint:containedctx // of one test
	config    *rest.Config
	dynamic   dynamic.Interface
	namespace string
}

func newClient(t *testing.T, config *rest.Config) *client {
	t.Helper()
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{ctx: t.Context(), config: config, dynamic: d, namespace: "apitest-" + rand.String(8)}
	// A cluster has objects for its namespaces, the embedded server has not.
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": c.namespace}}}
	if _, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(c.ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return c
}

// on is the interface of a kind in the client's namespace.
func (c *client) on(plural string) dynamic.ResourceInterface {
	return c.dynamic.Resource(schema.GroupVersionResource{Group: "agentctl.dev", Version: "v1alpha1", Resource: plural}).Namespace(c.namespace)
}

// plural is the resource of an object.
func plural(o *unstructured.Unstructured) string {
	if k, ok := crds.Kind(o.GetKind()); ok {
		return k.Plural
	}
	return "samples"
}

// create creates an object from YAML and returns it as the server stores it.
func (c *client) create(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, text)
	got, err := c.on(plural(o)).Create(c.ctx, o, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", text, err)
	}
	return got
}

// object reads YAML; an object of this API group needs no apiVersion.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if o.GetAPIVersion() == "" {
		o.SetAPIVersion(crds.GroupVersion)
	}
	return o
}

// field returns a field in the form of YAML; "" if there is none.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	v, ok, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return ""
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[:len(text)-1])
}

// poll waits until something holds.
func poll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
