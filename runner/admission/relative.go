package admission

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// Relative returns the first field of an object with a relative path, and that
// path; "" if there is none. A workspace that copies from no folder counts: it
// would be the current one. It uses the same functions that make paths absolute
// for a run, so that the two cannot differ.
func Relative(obj any) (at, path string) {
	var moved any
	switch o := obj.(type) {
	case *v1alpha1.Agent:
		a := o.DeepCopy()
		absoluteAgent(a, "/")
		moved = a
	case *v1alpha1.Model:
		m := o.DeepCopy()
		absoluteModel(m, "/")
		moved = m
	case *v1alpha1.Tool:
		t := o.DeepCopy()
		absoluteTool(t, "/")
		moved = t
	case *v1alpha1.Run:
		return relativeWorkspace("spec.workspace.source.path", o.Spec.Workspace)
	case *v1alpha1.Workspace:
		return relativeWorkspace("spec.source.path", &o.Spec.WorkspaceSpec)
	case *v1alpha1.Test:
		return relativeTest(o)
	case *v1alpha1.Skill:
		layout, local := strings.CutPrefix(o.Spec.Image, "oci:")
		switch dir := o.Spec.Dir; {
		case local && !strings.HasPrefix(layout, "/"):
			return "spec.image", layout
		case o.Spec.Image == "" && dir != "" && !strings.HasPrefix(dir, "/"):
			return "spec.dir", dir
		}
		return "", ""
	default:
		return "", ""
	}
	before, after := plain(obj), plain(moved)
	return shifted("spec", before["spec"], after["spec"])
}

// relativeTest is about the files of a test and of its cases.
func relativeTest(t *v1alpha1.Test) (at, path string) {
	of := func(at, record string, w *v1alpha1.TestWorkspace) (string, string) {
		switch {
		case record != "" && !strings.HasPrefix(record, "/"):
			return at + ".record", record
		case w != nil && w.Source != nil && !strings.HasPrefix(w.Source.Path, "/"):
			return at + ".workspace.source.path", w.Source.Path
		}
		return "", ""
	}
	at, path = of("spec", t.Spec.Record, t.Spec.Workspace)
	for i := range t.Spec.Cases {
		if c := &t.Spec.Cases[i]; at == "" {
			at, path = of(manifest.Index("spec.cases", i), c.Record, c.Workspace)
		}
	}
	return at, path
}

// plain is an object as decoded text.
func plain(obj any) (all map[string]any) {
	raw, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil // admission reports what cannot be written
	}
	return all
}

func relativeWorkspace(field string, w *v1alpha1.WorkspaceSpec) (at, path string) {
	switch {
	case w == nil || w.Strategy == v1alpha1.StrategyEmpty:
		return "", ""
	case w.Source != nil && w.Source.Git != nil:
		if auth := w.Source.Git.Auth; auth != nil {
			git := strings.TrimSuffix(field, "path") + "git.auth.password.valueFrom"
			before, moved := auth.Password.ValueFrom, auth.DeepCopy()
			absoluteValue(&moved.Password.ValueFrom, "/")
			return shifted(git, plain(before), plain(moved.Password.ValueFrom))
		}
		return "", ""
	case w.Source == nil || w.Source.Path == "":
		return field, ""
	case !strings.HasPrefix(w.Source.Path, "/"):
		return field, w.Source.Path
	}
	return "", ""
}

// shifted finds the first text that has changed and was not absolute before.
func shifted(at string, before, after any) (where, path string) {
	switch v := before.(type) {
	case string:
		if path := strings.TrimPrefix(v, "oci:"); v != after && !strings.HasPrefix(path, "/") {
			return at, path
		}
	case []any:
		moved, _ := after.([]any)
		for i := range min(len(v), len(moved)) {
			if where, path = shifted(manifest.Index(at, i), v[i], moved[i]); where != "" {
				return where, path
			}
		}
	case map[string]any:
		moved, _ := after.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if where, path = shifted(manifest.Join(at, key), v[key], moved[key]); where != "" {
				return where, path
			}
		}
	}
	return "", ""
}
