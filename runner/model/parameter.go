package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknownParameter is what is said about a name that a provider does not take.
const unknownParameter = " has no parameter "

const parametersPath = "spec.parameters"

// extra is the one door for members of the request that a table does not name:
// compatible servers have their own. It is sent as it is.
const extra = "extra"

// Parameter is one name of spec.parameters.
type Parameter struct {
	// Name in the manifest, and Wire on the wire; "" is one that the provider
	// itself reads from GivenParameters.Values.
	Name, Wire string
	Check      ParameterCheck
	// WithTools parameters may only be sent together with tools.
	WithTools bool
}

// ParameterTable is what a provider takes.
type ParameterTable struct {
	Provider string
	// Parameters sorted by name, which is also the order on the wire.
	Parameters []Parameter
	// Aliases are names people bring from elsewhere, in lower case.
	Aliases map[string]string
	// Reserved are members of the request that the run itself decides.
	Reserved []string
}

// GivenParameters is spec.parameters as it was read.
type GivenParameters struct {
	// Always are the members to send always, WithTools those to send only
	// together with tools.
	Always, WithTools Members
	// Values of the parameters that have no name in the wire format.
	Values   map[string]json.RawMessage
	Problems []Problem
}

func (g *GivenParameters) bad(path, format string, args ...any) {
	g.Problems = append(g.Problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Read reads spec.parameters; missing parameters are not a problem.
func (t ParameterTable) Read(raw json.RawMessage) GivenParameters {
	g := GivenParameters{Values: map[string]json.RawMessage{}}
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return g
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		g.bad(parametersPath, "must be an object")
		return g
	}
	for _, p := range t.Parameters {
		v, ok := given[p.Name]
		if !ok {
			continue
		}
		delete(given, p.Name)
		if wrong := p.Check(decode(v)); wrong != "" {
			g.bad(parametersPath+"."+p.Name, "%s, not %s", wrong, Quote(v))
			continue
		}
		switch {
		case p.Wire == "":
			g.Values[p.Name] = v
		case p.WithTools:
			g.WithTools.add(p.Wire, v)
		default:
			g.Always.add(p.Wire, v)
		}
	}
	if v, ok := given[extra]; ok {
		delete(given, extra)
		t.extra(&g, v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		g.bad(parametersPath+"."+name, "%s", t.unknown(name))
	}
	return g
}

func (t ParameterTable) extra(g *GivenParameters, raw json.RawMessage) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		g.bad(parametersPath+"."+extra, "must be an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		known := slices.ContainsFunc(t.Parameters, func(p Parameter) bool { return p.Wire == name })
		switch {
		case slices.Contains(t.Reserved, name):
			g.bad(parametersPath+"."+extra+"."+name, "is decided by the run")
		case known:
			g.bad(parametersPath+"."+extra+"."+name, "has a name of its own in spec.parameters")
		default:
			g.Always.add(name, given[name])
		}
	}
}

func (t ParameterTable) unknown(name string) string {
	plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	meant := t.Aliases[strings.ToLower(name)]
	var names []string
	for _, p := range t.Parameters {
		names = append(names, p.Name)
		if strings.ToLower(p.Name) == plain {
			meant = p.Name
		}
	}
	if meant != "" {
		return fmt.Sprintf("%s"+unknownParameter+"%s; did you mean %s?", t.Provider, name, meant)
	}
	return fmt.Sprintf("%s"+unknownParameter+"%s; it has %s, and extra for members of the request that have no name here", t.Provider, name, strings.Join(names, ", "))
}
