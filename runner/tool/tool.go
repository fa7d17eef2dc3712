// Package tool is what a model may call: it checks calls, runs them where they belong, and cuts what comes back.
//
// A call's program is a shipped tool, a plugin or any executable; the programs
// are started through the one launch seam (runner/sandbox), several tools of
// one program and profile sharing a process.
package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// Definition is a tool as a run uses it.
type Definition struct {
	// Name is the call name.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments; nil when only the plugin
	// itself can tell.
	Parameters json.RawMessage
	Spec       v1alpha1.ToolSpec
	// Annotations of the manifest.
	Annotations map[string]string

	keepHead bool
	freeText []string
}

// Define makes a definition of a Tool whose defaults and whose source's contract
// are written out, as a plan holds it.
func Define(t *v1alpha1.Tool) (Definition, error) {
	d := Definition{Name: t.Spec.CallName, Description: t.Spec.Description, Spec: *t.Spec.DeepCopy(), Annotations: t.Annotations}
	if t.Spec.Parameters != nil {
		d.Parameters = t.Spec.Parameters.Raw
	}
	if t.Spec.Source.Builtin != nil {
		b, ok := builtin.Lookup(t.Spec.Source.Builtin.Name)
		if !ok {
			return Definition{}, fmt.Errorf("tool %q: no shipped tool is named %q", t.Name, t.Spec.Source.Builtin.Name)
		}
		d.keepHead, d.freeText = b.KeepHead, b.FreeText
	}
	return d, nil
}

// Digest identifies what an approval is bound to: the name, the schema, the
// program as declared, and what it may do.
func (d *Definition) Digest() string {
	b, err := json.Marshal(struct {
		Name       string
		Parameters json.RawMessage
		Spec       v1alpha1.ToolSpec
	}{d.Name, d.Parameters, d.Spec})
	if err != nil {
		return "" // an empty digest never equals an approved one
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// For returns what a model is told about the tool.
func (d *Definition) For() message.ToolSpec {
	return message.ToolSpec{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
}

func (d *Definition) window() Window {
	return Window{Bytes: int(d.Spec.Limits.OutputBytes), Lines: int(d.Spec.Limits.OutputLines), KeepHead: d.keepHead}
}
