// Package tool is what a model may call: it checks calls, runs them where they belong, and cuts what comes back.
//
// A Kind describes one kind of tool program, and its Source starts the programs
// of a run; implementations are below runner/tool/source. The Pool opens the
// sources of one run, and keeps the processes that several tools share. The
// Registry is called by the loop: it checks arguments, asks the server of a
// tool and cuts the result.
package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Definition is a tool as a run uses it.
type Definition struct {
	// Name is the call name.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments; nil when only the plugin
	// itself can describe them.
	Parameters json.RawMessage
	Spec       v1alpha1.ToolSpec
	// Annotations of the manifest.
	Annotations map[string]string

	// Facts of its source.
	Facts
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

// For returns the description of the tool for a model.
func (d *Definition) For() message.ToolSpec {
	return message.ToolSpec{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
}

func (d *Definition) window() Window {
	return Window{Bytes: int(d.Spec.Limits.OutputBytes), Lines: int(d.Spec.Limits.OutputLines), KeepHead: d.KeepHead}
}
