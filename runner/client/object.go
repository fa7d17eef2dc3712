package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"agentctl.dev/agentctl/api/crds"
)

// group is the API group of the kinds of agentctl.
var group, _, _ = strings.Cut(crds.GroupVersion, "/")

// Ref names an object.
type Ref struct{ Kind, Namespace, Name string }

// named refuses what would lead elsewhere in a path.
func (r Ref) named() error {
	if errs := validation.IsDNS1123Label(r.Namespace); r.Namespace != "" && len(errs) > 0 {
		return fail(nil, "%q is no namespace: it has lower-case letters, digits and - between them, at most 63", r.Namespace)
	}
	if errs := content.IsPathSegmentName(r.Name); len(errs) > 0 {
		return fail(nil, "%q is no name: it %s", r.Name, strings.Join(errs, ", "))
	}
	return nil
}

// String is kind.group/name, as kubectl writes it; core kinds have no group.
func (r Ref) String() string {
	if r.Kind == KindEvent {
		return "event/" + r.Name
	}
	return strings.ToLower(r.Kind) + "." + group + "/" + r.Name
}

// prefix begins an error about the object.
func (r Ref) prefix() string {
	switch {
	case r.Kind == "":
		return ""
	case r.Name == "":
		return r.plural() + ": "
	}
	return fmt.Sprintf("%s %q: ", strings.ToLower(r.Kind), r.Name)
}

func (r Ref) plural() string {
	if r.Kind == KindEvent {
		return eventsPlural
	}
	if k, ok := crds.Kind(r.Kind); ok {
		return k.Plural
	}
	return strings.ToLower(r.Kind)
}

// Object is one as the API writes it.
type Object map[string]any

// decodeObject reads an object. Whole numbers are int64.
func decodeObject(raw []byte) (Object, error) {
	var o Object
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, (*map[string]any)(&o)); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it holds no object")
	}
	for _, field := range []string{"kind", "metadata.name", "metadata.namespace"} {
		if name := o.Text(strings.Split(field, ".")...); strings.ContainsFunc(name, steers) {
			return nil, fmt.Errorf("its %s is %.100q", field, name)
		}
	}
	return o, nil
}

// steers reports whether a character is not allowed in a name: names are shown
// as they are, on terminals too, and read line by line by other programs.
func steers(r rune) bool { return r <= ' ' || r >= 0x7f }

// Field returns the value at a path of names; nil when there is none.
func (o Object) Field(path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// Text returns the text at a path of names; "" when there is none.
func (o Object) Text(path ...string) string {
	s, _ := o.Field(path...).(string)
	return s
}

// Number returns the whole number at a path of names; 0 when there is none.
func (o Object) Number(path ...string) int64 {
	n, _ := o.Field(path...).(int64)
	return n
}

// Kind is the object's kind.
func (o Object) Kind() string { return o.Text("kind") }

// Name is the object's name.
func (o Object) Name() string { return o.Text("metadata", "name") }

// Namespace is the object's namespace.
func (o Object) Namespace() string { return o.Text("metadata", "namespace") }

// ResourceVersion changes with each write of the object.
func (o Object) ResourceVersion() string { return o.Text("metadata", "resourceVersion") }

// Ref names the object.
func (o Object) Ref() Ref { return Ref{Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()} }

// Created is when the object came into being.
func (o Object) Created() time.Time {
	t, _ := time.Parse(time.RFC3339, o.Text("metadata", "creationTimestamp"))
	return t
}

// Labels are the object's labels.
func (o Object) Labels() map[string]string { return o.texts("labels") }

// Annotations are the object's annotations.
func (o Object) Annotations() map[string]string { return o.texts("annotations") }

func (o Object) texts(name string) map[string]string {
	m, _ := o.Field("metadata", name).(map[string]any)
	all := make(map[string]string, len(m))
	for k, v := range m {
		all[k], _ = v.(string)
	}
	return all
}

// Condition is one of an object's.
type Condition struct {
	Type, Status, Reason, Message string
	// Since is when the status became what it is.
	Since time.Time
	// Generation of the object that the condition is about; 0: not set.
	Generation int64
}

// Conditions are those of the object's status.
func (o Object) Conditions() []Condition {
	l, _ := o.Field("status", "conditions").([]any)
	all := make([]Condition, 0, len(l))
	for _, v := range l {
		m, _ := v.(map[string]any)
		c := Object(m)
		since, _ := time.Parse(time.RFC3339, c.Text("lastTransitionTime"))
		all = append(all, Condition{
			Type: c.Text("type"), Status: c.Text("status"), Reason: c.Text("reason"), Message: c.Text("message"),
			Since: since, Generation: c.Number("observedGeneration"),
		})
	}
	return all
}

// Applied reports whether this program has applied the object.
func (o Object) Applied() bool {
	l, _ := o.Field("metadata", "managedFields").([]any)
	for _, v := range l {
		m, _ := v.(map[string]any)
		if e := Object(m); e.Text("manager") == FieldManager && e.Text("operation") == "Apply" {
			return true
		}
	}
	return false
}

// WithoutManagedFields leaves out the managers of fields: people do not read
// them.
func (o Object) WithoutManagedFields() Object {
	if m, ok := o["metadata"].(map[string]any); ok {
		delete(m, "managedFields")
	}
	return o
}
