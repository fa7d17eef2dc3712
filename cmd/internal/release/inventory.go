package main

import (
	"encoding/json"
	"maps"
	"os"
	"runtime/debug"
	"slices"
)

// The inventory is a CycloneDX 1.6 document: the programs of a release and the modules in
// them, from what the go command has stamped into each. It has no serial number and no time,
// so that it is the same for the same release.

type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// inventory writes the document.
func (o *Options) inventory(src *source, built []binary, file string) error {
	root := "pkg:golang/agentctl.dev/agentctl@" + o.Version
	d := document{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{component{Type: "application", Ref: root, Name: "agentctl", Version: o.Version, PURL: root, Properties: []property{{"agentctl:commit", src.Commit}}}},
	}
	modules, all := map[string]component{}, []string{}
	for i := range built {
		b := &built[i]
		ref := b.Platform.String() + "/" + b.Name
		d.Components = append(d.Components, component{
			Type: "application", Ref: ref, Name: b.Name, Version: o.Version, Hashes: []hash{{"SHA-256", b.SHA256}},
			Properties: []property{{"agentctl:platform", b.Platform.String()}},
		})
		needs := []string{library(modules, &debug.Module{Path: "std", Version: b.Info.GoVersion})}
		for _, m := range b.Info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if m.Path == sdkModule { // built from the same commit, of which the go command knows no version
				m = &debug.Module{Path: m.Path, Version: o.Version}
			}
			needs = append(needs, library(modules, m))
		}
		slices.Sort(needs)
		d.Dependencies, all = append(d.Dependencies, dependency{ref, needs}), append(all, ref)
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		d.Components = append(d.Components, modules[ref])
	}
	d.Dependencies = append([]dependency{{root, all}}, d.Dependencies...)
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// library notes a module and returns its reference.
func library(modules map[string]component, m *debug.Module) string {
	ref := "pkg:golang/" + m.Path + "@" + m.Version
	if _, known := modules[ref]; !known {
		c := component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, PURL: ref}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}} // of a module's files, not of one file
		}
		modules[ref] = c
	}
	return ref
}
