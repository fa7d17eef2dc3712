// Package crds holds the schemas of the kinds and what follows from them: defaults, editor schemas, explanations.
//
// The schemas are those of the CustomResourceDefinitions in this folder, which
// are generated from package v1alpha1. A kind is decoded when it is first asked
// for, because most commands need one or two of them.
package crds

//go:generate go run ./internal/bundle . zz_generated.schemas.go

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// GroupVersion is what manifests of every kind name in apiVersion.
const GroupVersion = "agentctl.dev/v1alpha1"

// KindSchema is a kind as its CRD declares it. It is shared: read it, do not
// change it.
type KindSchema struct {
	// Kind as a manifest writes it: Agent.
	Kind string
	// Plural and Singular are the resource names: agents, agent.
	Plural, Singular string
	// ShortNames are further names on a command line: ag.
	ShortNames []string
	// Categories are the words for several kinds that mean this one, too: agentctl.
	Categories []string
	// Schema is the CRD's structural schema. Numbers are int64 or float64.
	Schema map[string]any
}

// entry is one kind of the generated bundle.
type entry struct {
	kind, plural, singular string
	shortNames, categories []string
	schema                 string
}

// decoded holds each kind once it has been asked for; the index is that of bundle.
var decoded [len(bundle)]struct {
	once sync.Once
	kind KindSchema
}

// Kinds returns the name of every kind in the order a reader meets them.
func Kinds() []string {
	names := make([]string, len(bundle))
	for i := range bundle {
		names[i] = bundle[i].kind
	}
	return names
}

// Kind returns the schema of a kind by its exact name.
func Kind(kind string) (*KindSchema, bool) {
	for i := range bundle {
		if bundle[i].kind == kind {
			return decode(i), true
		}
	}
	return nil, false
}

// Resolve returns the kind that a user means by agent, agents, ag or AGENT.
func Resolve(name string) (kind string, ok bool) {
	name = strings.ToLower(name)
	for i := range bundle {
		e := &bundle[i]
		if name == e.singular || name == e.plural || slices.Contains(e.shortNames, name) {
			return e.kind, true
		}
	}
	return "", false
}

// InCategory returns the kinds of a category such as agentctl; none for another
// word.
func InCategory(name string) []string {
	var kinds []string
	for i := range bundle {
		if slices.Contains(bundle[i].categories, name) {
			kinds = append(kinds, bundle[i].kind)
		}
	}
	return kinds
}

func decode(i int) *KindSchema {
	d := &decoded[i]
	d.once.Do(func() {
		e := &bundle[i]
		schema, err := decodeObject(e.schema)
		if err != nil {
			// The bundle is generated and tested: a broken one cannot be built.
			panic(fmt.Sprintf("crds: schema of %s: %v", e.kind, err))
		}
		d.kind = KindSchema{Kind: e.kind, Plural: e.plural, Singular: e.singular, ShortNames: e.shortNames, Categories: e.categories, Schema: schema}
	})
	return &d.kind
}

// decodeObject decodes JSON with whole numbers as int64, as manifests have them.
func decodeObject(text string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var obj map[string]any
	if err := dec.Decode(&obj); err != nil {
		return nil, err
	}
	if _, err := plainNumbers(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// plainNumbers replaces each json.Number by an int64 or a float64.
func plainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, e := range v {
			if v[i], err = plainNumbers(e); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	return v, nil
}
