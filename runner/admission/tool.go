package admission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/sandbox/egress"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

func (a *admitter) tool(d *manifest.Document, t *v1alpha1.Tool) {
	facts, _ := a.opts.Tools.Facts(&t.Spec) // what is wrong is found below, with its place
	a.source(d, t, &facts)
	a.callName(d, t, &facts)
	if t.Spec.Parameters != nil && len(t.Spec.Parameters.Raw) > 0 {
		a.schema(d, "spec.parameters", t.Spec.Parameters.Raw, true)
	}
	for i := range t.Spec.Env {
		a.env(d, manifest.Index("spec.env", i), t, &t.Spec.Env[i], &facts)
	}
	a.supplies(d, t, &facts)
	a.network(d, t)
	a.mounts(d, t)
	if t.Spec.Isolation.Minimum == v1alpha1.IsolationContainer && facts.Level != v1alpha1.IsolationContainer && facts.Kind != "" {
		a.add(d.Warnf("spec.isolation.minimum", "only an image runs in a container, and source.%s is none: a run that uses it ends with exit code 8", facts.Kind).
			With("make an image of the program with agentctl image build, and name it as spec.source.container"))
	}
	a.positive(d, "spec.limits.timeout", t.Spec.Limits.Timeout.Duration)
	a.quantity(d, "spec.limits.memory", t.Spec.Limits.Memory)
	a.quantity(d, "spec.limits.cpu", t.Spec.Limits.CPU)
	a.quantity(d, "spec.limits.scratch", t.Spec.Limits.Scratch)
}

func (a *admitter) source(d *manifest.Document, t *v1alpha1.Tool, f *tool.Facts) {
	path := "spec.source." + f.Kind
	if f.Shipped != "" {
		a.builtin(d, t, f.Shipped)
	}
	if f.Agent != "" {
		if a.reference(d, path+".name", v1alpha1.KindAgent, f.Agent, names(a.catalog.Agents)) {
			a.startable(d, path+".name", f.Agent)
			a.agentParameters(d, t, f.Agent)
		}
	}
	if t.Spec.Source.Several() {
		a.functions(d, t, f)
	}
	for _, fault := range f.Faults {
		a.add(d.Errorf(fault.Field, "%s", fault.Problem).With(fault.Hint))
	}
	if f.Command == nil {
		return
	}
	command := path + ".command"
	if f.CommandField != "" {
		command = path + "." + f.CommandField
	}
	a.command(d, command, f.Command)
	a.program(d, command, f.Command)
	if t.Spec.Source.Several() || a.catalog.choosesOf(t.Name) {
		return
	}
	if t.Spec.Parameters != nil && len(t.Spec.Parameters.Raw) > 0 || d.Faulty("spec.parameters") {
		return
	}
	if f.Describes {
		a.add(d.Warnf(path, "args untyped: without parameters no rule can be checked against this tool's arguments").
			With("write the program's JSON Schema as spec.parameters"))
		return
	}
	a.add(d.KeyErrorf("spec", `field "parameters" is missing: a program behind %s cannot tell its own`, f.Kind).At("spec.parameters").
		With("write parameters: {type: object, properties: {...}}"))
}

// functions checks what is refused where each function describes itself, and what has no
// effect where no program is started.
func (a *admitter) functions(d *manifest.Document, t *v1alpha1.Tool, f *tool.Facts) {
	if t.Spec.Parameters != nil && len(t.Spec.Parameters.Raw) > 0 {
		a.add(d.KeyErrorf("spec.parameters", "has no effect: the server describes the arguments of each of its functions").With("remove it"))
	}
	if f.Remote == "" {
		return
	}
	unused := func(set bool, field string) {
		if set {
			a.add(d.Errorf(field, "has no effect: no program is started for a server at a URL").With("remove it"))
		}
	}
	unused(len(t.Spec.Env) > 0, "spec.env")
	unused(len(t.Spec.Isolation.Mounts) > 0, "spec.isolation.mounts")
	unused(t.Spec.Isolation.Fresh, "spec.isolation.fresh")
	unused(t.Spec.Network.Mode != "" && t.Spec.Network.Mode != v1alpha1.NetworkNone, "spec.network.mode")
}

func (a *admitter) command(d *manifest.Document, path string, command []string) {
	if len(command) > 0 && strings.TrimSpace(command[0]) == "" && !d.Faulty(path) {
		a.add(d.Errorf(manifest.Index(path, 0), "the program's name is empty"))
	}
	for i, arg := range command {
		if strings.ContainsRune(arg, 0) {
			a.add(d.Errorf(manifest.Index(path, i), "an argument must not hold a NUL character"))
		}
	}
}

// program warns of a tool whose program is missing on this host, or cannot be
// executed: it may not be built yet.
func (a *admitter) program(d *manifest.Document, path string, command []string) {
	if !a.opts.Programs || len(command) == 0 || strings.TrimSpace(command[0]) == "" {
		return
	}
	name := command[0]
	if strings.Contains(name, "/") {
		name = absolute(d.Dir, name)
	}
	if _, err := exec.LookPath(name); err != nil {
		why := "is not in PATH"
		if broken, ok := errors.AsType[*fs.PathError](err); ok {
			err = broken.Err
		}
		if strings.Contains(name, "/") {
			why = fmt.Sprintf("cannot be executed: %v", cmp.Or(errors.Unwrap(err), err))
		}
		a.add(d.Warnf(manifest.Index(path, 0), "the program %s %s", clip(name), why).With("build or install it, or correct the path, which is relative to the manifest"))
	}
}

// builtin holds a manifest to the floors of a shipped tool.
func (a *admitter) builtin(d *manifest.Document, t *v1alpha1.Tool, name string) {
	b, ok := builtin.Lookup(name)
	if !ok {
		if name != "" {
			a.reference(d, "spec.source.builtin.name", builtinTool, name, builtin.Names())
		}
		return
	}
	if t.Spec.Risk != "" && t.Spec.Risk < b.Risk {
		a.add(d.Errorf("spec.risk", "%s is below %s, the risk of the built-in tool %s: a manifest can only raise it", t.Spec.Risk, b.Risk, name))
	}
	if t.Spec.Category != "" && t.Spec.Category != b.Category {
		a.add(d.Errorf("spec.category", "the built-in tool %s is of category %s: rules rely on it", name, b.Category))
	}
	if b.Network.Mode == v1alpha1.NetworkProxy && t.Spec.Network.Mode != v1alpha1.NetworkProxy && !d.Faulty("spec.network") {
		a.add(d.Errorf("spec.network.mode", "the built-in tool %s reaches servers through the proxy only, and the mode is %s", name, t.Spec.Network.Mode).
			With("write network: {mode: Proxy, allow: [\"example.com:443\"]} with the servers that it may reach"))
	}
	if b.Endpoint != "" {
		a.endpoint(d, t, name, b.Endpoint)
	}
	a.coding(d, name, builtin.Coding(&t.Spec.Source))
	if t.Spec.Parameters != nil && len(t.Spec.Parameters.Raw) > 0 {
		a.add(d.KeyErrorf("spec.parameters", "the parameters of the built-in tool %s are compiled in", name))
	}
}

// callName keeps the name of a shipped tool for that tool: a rule or a
// permission about bash must mean the shell.
func (a *admitter) callName(d *manifest.Document, t *v1alpha1.Tool, f *tool.Facts) {
	name := CallName(t)
	if _, ok := builtin.Lookup(name); !ok {
		if len(name) > 64 || strings.ContainsRune(name, '.') {
			a.add(d.Errorf("metadata.name", "%q cannot be the name by which a model calls the tool: 1 to 64 of A-Z a-z 0-9 _ -", clip(name)).
				With("write spec.callName"))
		}
		return
	}
	if f.Shipped == name || d.Faulty("spec.source") {
		return
	}
	path := "spec.callName"
	if t.Spec.CallName == "" {
		path = "metadata.name"
	}
	a.add(d.Errorf(path, "the call name %q belongs to a built-in tool: rules about it would judge another program", name).
		With("choose another spec.callName"))
}

// CallName is what models and rules call a tool.
func CallName(t *v1alpha1.Tool) string {
	if t.Spec.CallName != "" {
		return t.Spec.CallName
	}
	return t.Name
}

func (a *admitter) env(d *manifest.Document, path string, t *v1alpha1.Tool, e *v1alpha1.EnvVar, f *tool.Facts) {
	given := 0
	for _, set := range []bool{e.Value != nil, e.ValueFrom != nil, e.SuppliedBy != nil} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		a.add(d.Errorf(path, "needs exactly one of value, valueFrom, suppliedBy; %d are given", given))
	case given == 0 && !d.Faulty(path):
		a.add(d.Errorf(path, "needs exactly one of value, valueFrom, suppliedBy; none is given"))
	case e.SuppliedBy != nil:
		a.supplied(d, path, t, e, f)
	}
}

func (a *admitter) network(d *manifest.Document, t *v1alpha1.Tool) {
	n := t.Spec.Network
	for i, entry := range n.Allow {
		if entry == "" {
			continue
		}
		if _, err := egress.ParsePattern(entry); err != nil {
			a.add(d.Errorf(manifest.Index("spec.network.allow", i), "%q %s", clip(entry), err))
		}
	}
	if len(n.Allow) == 0 && n.Mode == v1alpha1.NetworkProxy {
		a.add(d.Warnf("spec.network.mode", "Proxy reaches nothing without entries in spec.network.allow").With("write for example allow: [\"api.github.com:443\"]"))
	}
	if len(n.Allow) > 0 && n.Mode != v1alpha1.NetworkProxy {
		a.add(d.Errorf("spec.network.allow", "has no effect: it counts for mode Proxy only, and the mode is %s", n.Mode).With("remove it, or write mode: Proxy"))
	}
}

// noMounts are folders of which a mount would open the sandbox itself.
var noMounts = []string{"/", "/proc", "/sys", "/dev", "/run", "/var/run"}

func (a *admitter) mounts(d *manifest.Document, t *v1alpha1.Tool) {
	for i, m := range t.Spec.Isolation.Mounts {
		at := manifest.Index("spec.isolation.mounts", i) + ".path"
		if strings.HasPrefix(m.Path, "~") || strings.Contains(m.Path, "${") {
			a.add(d.Errorf(at, "%q is taken as it stands: neither ~ nor variables are filled in", clip(m.Path)).
				With("write the whole path, such as /srv/cache/mod; ./~ is a folder of that name"))
			continue
		}
		path := absolute(d.Dir, m.Path)
		for _, not := range noMounts {
			if path == not || not != "/" && strings.HasPrefix(path, not+"/") {
				a.add(d.Errorf(at, "%q would open the sandbox: %s is never mounted", clip(m.Path), not).
					With("name the file or folder the program needs"))
				break
			}
		}
	}
}

func (a *admitter) quantity(d *manifest.Document, path string, q *resource.Quantity) {
	if q != nil && q.Sign() <= 0 {
		a.add(d.Errorf(path, "%s is not more than 0", q))
	}
}

// shipped returns a built-in tool as the object it would be in a manifest.
func shipped(name string) (*v1alpha1.Tool, error) {
	nameless, err := anyShipped()
	if err != nil {
		return nil, fmt.Errorf("built-in tool %q: %w", name, err)
	}
	t := nameless.DeepCopy()
	t.Name, t.Spec.Source = name, builtin.Source(name)
	if b, ok := builtin.Lookup(name); ok {
		t.Spec.Network = *b.Network.DeepCopy()
	}
	return t, nil
}

// anyShipped is what the built-in tools have in common: the defaults of the
// schema. To apply them takes as long as to read a manifest.
var anyShipped = sync.OnceValues(func() (*v1alpha1.Tool, error) {
	obj := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KindTool,
		"metadata": map[string]any{},
		"spec":     map[string]any{"source": map[string]any{"builtin": map[string]any{}}},
	}
	crds.ApplyDefaults(v1alpha1.KindTool, obj)
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	t := &v1alpha1.Tool{}
	return t, json.Unmarshal(raw, t)
})

// Tool returns a declared Tool as a run uses it: everything is written out that it leaves to
// its source, and paths are absolute. nil: no Tool of the set has the name.
func (c *Catalog) Tool(name string) *v1alpha1.Tool {
	e, ok := c.Tools[name]
	if !ok {
		return nil
	}
	t := Materialised(e.Object)
	absoluteTool(t, e.Doc.Dir)
	return t
}

// Materialised returns a Tool with everything written out that it leaves to its
// source.
func Materialised(t *v1alpha1.Tool) *v1alpha1.Tool {
	t = t.DeepCopy()
	materialise(t)
	return t
}

// materialise writes out what a Tool leaves to its source.
func materialise(t *v1alpha1.Tool) {
	t.Spec.CallName = CallName(t)
	builtin.Complete(&t.Spec)
}
