package events

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Describe adds what describes events to clients. The API server's libraries
// have the types of custom resources alone, so these are made from the Go types.
func Describe(others common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := others(ref)
		for _, t := range []documented{corev1.Event{}, corev1.EventList{}, corev1.EventSource{}, corev1.EventSeries{}, corev1.ObjectReference{}} {
			all[t.OpenAPIModelName()] = definition(t, ref)
		}
		return all
	}
}

// named is a type with a definition of its own.
type named interface{ OpenAPIModelName() string }

// documented is one whose fields are described, too.
type documented interface {
	named
	SwaggerDoc() map[string]string
}

func definition(t documented, ref common.ReferenceCallback) common.OpenAPIDefinition {
	d := common.OpenAPIDefinition{}
	docs := t.SwaggerDoc()
	d.Schema.Type, d.Schema.Description, d.Schema.Properties = spec.StringOrArray{"object"}, docs[""], map[string]spec.Schema{}
	for f := range reflect.TypeOf(t).Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous { // kind and apiVersion
			d.Schema.Properties["kind"], d.Schema.Properties["apiVersion"] = text(metav1.TypeMeta{}.SwaggerDoc()["kind"]), text(metav1.TypeMeta{}.SwaggerDoc()["apiVersion"])
			continue
		}
		property, needs := property(f.Type, ref)
		property.Description = docs[name]
		if !strings.Contains(options, "omitempty") {
			d.Schema.Required = append(d.Schema.Required, name)
		}
		d.Schema.Properties[name] = property
		d.Dependencies = append(d.Dependencies, needs...)
	}
	return d
}

func text(description string) spec.Schema {
	s := spec.StringProperty()
	s.Description = description
	return *s
}

// property describes the type of a field, and returns which definitions it
// needs.
func property(t reflect.Type, ref common.ReferenceCallback) (s spec.Schema, needs []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n, ok := reflect.TypeAssert[named](reflect.Zero(t)); ok {
		s.Ref = ref(n.OpenAPIModelName())
		return s, []string{n.OpenAPIModelName()}
	}
	switch t.Kind() {
	case reflect.Slice:
		items, needs := property(t.Elem(), ref)
		return *spec.ArrayProperty(&items), needs
	case reflect.Int32:
		return *spec.Int32Property(), nil
	default:
		return text(""), nil
	}
}
