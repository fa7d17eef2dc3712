package admission

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/sandbox/egress"
)

// strict reports what may be right and is a risk where nobody watches: programs and models
// that may be others tomorrow, tools that reach every server, and instructions that hold
// what somebody else has written.
func (a *admitter) strict() {
	for _, name := range names(a.catalog.Models) {
		e := a.catalog.Models[name]
		if m := &e.Object.Spec; m.Model != "" && !e.Doc.Faulty("spec") && !a.opts.Models.Pinned(m) {
			server, how := model.ToPin(m)
			a.add(e.Doc.Warnf("spec.model", "%q has no version: %s may answer with another model tomorrow", clip(m.Model), clip(server)).
				As(manifest.RuleModelUnpinned).With(clip(how)))
		}
	}
	for _, name := range names(a.catalog.Tools) {
		e := a.catalog.Tools[name]
		a.reachesAll(e.Doc, e.Object)
		facts, _ := a.opts.Tools.Facts(&e.Object.Spec) // what is wrong is found with the Tool
		if i, fetched := unpinnedPackage(facts.Command); fetched != "" {
			field := "command"
			if facts.CommandField != "" {
				field = facts.CommandField
			}
			a.add(e.Doc.Warnf(manifest.Index("spec.source."+facts.Kind+"."+field, i), "%s fetches the newest %s at each start", path.Base(facts.Command[0]), clip(fetched)).
				As(manifest.RuleProgramUnpinned).With("name a version, as in " + clip(fetched) + "@1.2.3, or make an image of the program"))
		}
	}
	for _, name := range names(a.catalog.Agents) {
		e := a.catalog.Agents[name]
		a.interpolates(e.Doc, e.Object)
	}
}

// reachesAll reports a network in which a tool can send anything anywhere.
func (a *admitter) reachesAll(d *manifest.Document, t *v1alpha1.Tool) {
	if t.Spec.Network.Mode == v1alpha1.NetworkHost {
		a.add(d.Warnf("spec.network.mode", "Host reaches every server, and those of this machine and its network").
			As(manifest.RuleNetworkOpen).With("write mode: Proxy, and the servers in spec.network.allow"))
	}
	for i, entry := range t.Spec.Network.Allow {
		if p, err := egress.ParsePattern(entry); err == nil && p.AnyHost() {
			a.add(d.Warnf(manifest.Index("spec.network.allow", i), "%q reaches every server", clip(entry)).
				As(manifest.RuleNetworkOpen).With("name the servers, such as api.github.com:443"))
		}
	}
}

// runners start a package that they fetch.
var runners = []string{"npx", "bunx", "pnpx", "uvx"}

// unpinnedPackage returns the package without a version that a command fetches, and where
// in the command it is; "" if there is none.
func unpinnedPackage(command []string) (at int, name string) {
	if len(command) == 0 || !slices.Contains(runners, path.Base(command[0])) {
		return 0, ""
	}
	for i, arg := range command[1:] {
		if strings.HasPrefix(arg, "-") || arg == "" {
			continue
		}
		version := strings.TrimPrefix(arg, "@") // a scope
		_, after, has := strings.Cut(version, "@")
		if (has && after != "latest" && after != "") || strings.Contains(arg, "==") || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") {
			return 0, ""
		}
		return i + 1, arg
	}
	return 0, ""
}

// interpolates reports inputs in the instructions of an agent that can hold any text: a
// model takes them for the words of the author.
func (a *admitter) interpolates(d *manifest.Document, ag *v1alpha1.Agent) {
	const field = "spec.instructions"
	if d.Faulty(field) || ag.Spec.Inputs == nil {
		return
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(ag.Spec.Inputs.Schema.Raw, &schema) != nil {
		return // reported with the schema
	}
	text := ag.Spec.Instructions
	for _, r := range prompt.References(text) {
		if !freeText(schema.Properties[r.Name]) {
			continue
		}
		before := text[:r.At]
		line := strings.Count(before, "\n")
		col := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
		f := d.ErrorInside(field, line+1, col+1, "the input %q can hold any text, which the model takes for your instructions", clip(r.Name)).As(manifest.RulePromptUntrusted).
			With("let the prompt hold it, or restrict it with enum, pattern, format or another type in spec.inputs.schema")
		f.Severity = manifest.Warning
		a.add(f)
	}
}

// freeText reports whether the schema of an input lets it hold any text.
func freeText(raw json.RawMessage) bool {
	var s struct {
		Type    any               `json:"type"`
		Enum    []json.RawMessage `json:"enum"`
		Const   json.RawMessage   `json:"const"`
		Pattern string            `json:"pattern"`
		Format  string            `json:"format"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return true
	}
	switch s.Type {
	case "integer", "number", "boolean", "null":
		return false
	}
	return len(s.Enum) == 0 && s.Const == nil && s.Pattern == "" && s.Format == ""
}
