package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// later are kinds that have a name already and come with the work that needs them.
var later = []string{"Schedule"}

// envelope checks what every kind has: apiVersion, kind and metadata.
func (a *admitter) envelope(d *manifest.Document) {
	a.version(d)
	a.kind(d)
	a.name(d)
	a.labels(d)
}

func (a *admitter) version(d *manifest.Document) {
	want := v1alpha1.GroupVersion.String()
	switch {
	case d.APIVersion == want:
	case d.Value["apiVersion"] == nil:
		a.add(d.Errorf("apiVersion", `field "apiVersion" is missing`).With("write apiVersion: " + want))
	case d.APIVersion != "":
		a.add(d.Errorf("apiVersion", "%q is not an apiVersion of this program", d.APIVersion).With("write " + want))
	}
}

func (a *admitter) kind(d *manifest.Document) {
	kinds := v1alpha1.Kinds()
	switch {
	case slices.Contains(kinds, d.Kind):
	case d.Kind == "":
		a.add(d.Errorf("kind", `field "kind" is missing`).With("one of " + strings.Join(kinds, ", ")))
	case slices.Contains(later, d.Kind):
		a.add(d.Errorf("kind", "kind %s is not part of this version", d.Kind).With("one of " + strings.Join(kinds, ", ")))
	default:
		f := d.Errorf("kind", "there is no kind %q", d.Kind).With(manifest.Suggest(d.Kind, kinds))
		if f.Suggestion == "" {
			f.Suggestion = "one of " + strings.Join(kinds, ", ")
		}
		a.add(f)
	}
}

func (a *admitter) name(d *manifest.Document) {
	if d.Name == "" {
		generate, _ := lookup(d.Value, "metadata.generateName").(string)
		if d.Kind == v1alpha1.KindRun && generate != "" {
			return
		}
		if !d.Faulty("metadata.name") {
			a.add(d.KeyErrorf("metadata", `field "name" is missing`).At("metadata.name"))
		}
		return
	}
	if errs := validation.IsDNS1123Subdomain(d.Name); len(errs) > 0 {
		f := d.Errorf("metadata.name", "%q is no name: use lower-case letters, digits, - and .", clip(d.Name))
		if len(d.Name) > validation.DNS1123SubdomainMaxLength {
			f.Message = fmt.Sprintf("the name has %d characters; at most %d are allowed", len(d.Name), validation.DNS1123SubdomainMaxLength)
		} else if s := suggestName(d.Name); s != "" {
			f.Suggestion = manifest.DidYouMean(s)
		}
		a.add(f)
	}
}

// suggestName makes a valid name from one that is nearly valid.
func suggestName(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == ' ' || r == '/':
			return '-'
		}
		return -1
	}, name)
	s = strings.Trim(s, "-.")
	if len(validation.IsDNS1123Subdomain(s)) > 0 {
		return ""
	}
	return s
}

func (a *admitter) labels(d *manifest.Document) {
	meta, _ := d.Value["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := manifest.Join("metadata.labels", key)
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			a.add(d.KeyErrorf(path, "%q is no label name: letters, digits, - _ . between them, at most 63", clip(key)))
		}
		value, _ := labels[key].(string)
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			a.add(d.Errorf(path, "%q is no label value: letters, digits, - _ . between them, at most 63", clip(value)))
		}
	}
}

// enter puts an object into the catalog, or reports that its name is taken.
func (a *admitter) enter(d *manifest.Document) {
	if d.Name == "" || d.Object == nil {
		if run, ok := d.Object.(*v1alpha1.Run); ok {
			a.catalog.unnamed = append(a.catalog.unnamed, Entry[v1alpha1.Run]{run, d})
		}
		return
	}
	if before := a.catalog.put(d); before != nil {
		at := before.Locate("metadata.name")
		f := d.Errorf("metadata.name", "%s %q is declared twice: the first time in %s", d.Kind, d.Name, at)
		a.add(f)
	}
}

// namespaces holds a set to one namespace: references do not cross them.
func (a *admitter) namespaces(docs []*manifest.Document) {
	var first *manifest.Document
	for _, d := range docs {
		switch {
		case d.Namespace == "":
		case len(validation.IsDNS1123Label(d.Namespace)) > 0:
			a.add(d.Errorf("metadata.namespace", "%q is no namespace: use lower-case letters, digits and -", clip(d.Namespace)))
		case first == nil:
			first = d
		case d.Namespace != first.Namespace:
			a.add(d.Errorf("metadata.namespace", "namespace %q differs from %q in %s: references do not cross namespaces",
				d.Namespace, first.Namespace, first.Locate("metadata.namespace")))
		}
	}
}

func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// listed returns which names exist, for a reader who cannot see what was
// loaded.
func listed(kind string, known []string) string {
	const most = 12
	switch {
	case len(known) == 0:
		return fmt.Sprintf("no manifest given here declares a %s", kind)
	case len(known) > most:
		known = append(slices.Clone(known[:most]), "...")
	}
	return "known: " + strings.Join(known, ", ")
}
