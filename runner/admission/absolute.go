package admission

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Absolute makes the relative paths of an object absolute, from the folder of
// its manifest, because an object of a control plane has no folder. The object
// is the decoded text, so that no default gets into it. Its rules for paths are
// those of Resolve for a plan.
func Absolute(kind string, obj map[string]any, dir string) {
	spec := fields(obj["spec"])
	switch kind {
	case v1alpha1.KindAgent:
		for _, e := range entries(spec["diagnostics"]) {
			absoluteArgv(e, "command", dir)
			absoluteArgv(e, "server", dir)
		}
		for _, e := range entries(spec["publish"]) {
			absoluteFrom(fields(fields(e["credential"])["valueFrom"]), dir)
		}
	case v1alpha1.KindModel:
		absoluteFrom(fields(fields(spec["apiKey"])["valueFrom"]), dir)
		absoluteField(fields(spec["cassette"]), "path", dir)
	case v1alpha1.KindTool:
		absoluteSource(fields(spec["source"]), dir)
		for _, e := range entries(spec["env"]) {
			absoluteFrom(fields(e["valueFrom"]), dir)
		}
		for _, m := range entries(fields(spec["isolation"])["mounts"]) {
			absoluteField(m, "path", dir)
		}
	case v1alpha1.KindSkill:
		if image, ok := spec["image"].(string); ok { // the dir is one of the image then
			spec["image"] = absoluteImage(dir, image)
			return
		}
		absoluteField(spec, "dir", dir)
	case v1alpha1.KindWorkspace:
		absoluteFiles(fields(spec["source"]), dir)
	case v1alpha1.KindRun:
		absoluteFiles(fields(fields(spec["workspace"])["source"]), dir)
	case v1alpha1.KindTest:
		for _, of := range append(entries(spec["cases"]), spec) {
			absoluteField(of, "record", dir)
			absoluteField(fields(fields(of["workspace"])["source"]), "path", dir)
		}
	}
}

// absoluteFiles is about the source of a workspace.
func absoluteFiles(src map[string]any, dir string) {
	absoluteField(src, "path", dir)
	password := fields(fields(fields(src["git"])["auth"])["password"])
	absoluteFrom(fields(password["valueFrom"]), dir)
}

// absoluteSource is about a source of any kind. What holds a path has the same name in
// all of them: command is a program and its arguments, valueFrom a reference, image an
// image.
func absoluteSource(src map[string]any, dir string) {
	absoluteArgv(src, "command", dir)
	absoluteFrom(fields(src["valueFrom"]), dir)
	if image, ok := src["image"].(string); ok {
		src["image"] = absoluteImage(dir, image)
	}
	for _, v := range src {
		absoluteSource(fields(v), dir)
		for _, e := range entries(v) {
			absoluteSource(e, dir)
		}
	}
}

// absoluteImage is about an image, which may be a file or folder of this host.
func absoluteImage(dir, image string) string {
	if layout, ok := strings.CutPrefix(image, "oci:"); ok {
		return "oci:" + absolute(dir, layout)
	}
	return image
}

// absoluteFrom is about a valueFrom.
func absoluteFrom(v map[string]any, dir string) {
	absoluteField(v, "file", dir)
	absoluteArgv(v, "exec", dir)
}

func absoluteField(m map[string]any, name, dir string) {
	if path, ok := m[name].(string); ok && path != "" {
		m[name] = absolute(dir, path)
	}
}

// absoluteArgv leaves a bare program name to the search path.
func absoluteArgv(m map[string]any, name, dir string) {
	argv, _ := m[name].([]any)
	if len(argv) == 0 {
		return
	}
	if program, ok := argv[0].(string); ok && strings.Contains(program, "/") {
		argv[0] = absolute(dir, program)
	}
}

func fields(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func entries(v any) []map[string]any {
	l, _ := v.([]any)
	all := make([]map[string]any, 0, len(l))
	for _, e := range l {
		if m := fields(e); m != nil {
			all = append(all, m)
		}
	}
	return all
}

func absoluteAgent(a *v1alpha1.Agent, dir string) {
	for i := range a.Spec.Diagnostics {
		absoluteCommand(a.Spec.Diagnostics[i].Command, dir)
		absoluteCommand(a.Spec.Diagnostics[i].Server, dir)
	}
	for i := range a.Spec.Publish {
		if c := a.Spec.Publish[i].Credential; c != nil {
			absoluteValue(&c.ValueFrom, dir)
		}
	}
}

func absoluteModel(m *v1alpha1.Model, dir string) {
	if m.Spec.APIKey != nil {
		absoluteValue(&m.Spec.APIKey.ValueFrom, dir)
	}
	if m.Spec.Cassette != nil {
		m.Spec.Cassette.Path = absolute(dir, m.Spec.Cassette.Path)
	}
}

func absoluteTool(t *v1alpha1.Tool, dir string) {
	if src := plain(t.Spec.Source); src != nil {
		absoluteSource(src, dir)
		if raw, err := json.Marshal(src); err == nil {
			_ = json.Unmarshal(raw, &t.Spec.Source) // it was written from one
		}
	}
	for i := range t.Spec.Env {
		if v := t.Spec.Env[i].ValueFrom; v != nil {
			absoluteValue(v, dir)
		}
	}
	for i := range t.Spec.Isolation.Mounts {
		m := &t.Spec.Isolation.Mounts[i]
		m.Path = absolute(dir, m.Path)
	}
}

func absoluteValue(v *v1alpha1.ValueFrom, dir string) {
	if v.File != "" {
		v.File = absolute(dir, v.File)
	}
	absoluteCommand(v.Exec, dir)
}

// absoluteCommand leaves a bare program name to the search path.
func absoluteCommand(command []string, dir string) {
	if len(command) > 0 && strings.Contains(command[0], "/") {
		command[0] = absolute(dir, command[0])
	}
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
