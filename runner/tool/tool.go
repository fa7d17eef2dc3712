// Package tool is what a model may call: it checks calls, runs them where they belong, and cuts what comes back.
//
// A Kind describes one kind of tool program, and its Source starts the programs
// of a run; implementations are below runner/tool/source. The Pool opens the
// sources of one run, and keeps the processes that several tools share. The
// Registry is called by the loop: it checks arguments, asks the server of a
// tool and cuts the result.
//
// A call has five types on its way from the model to the program:
//
//   - message.CallRequest is what the model wrote: nothing of it is checked.
//   - message.Checked is what Registry.Check makes of it: the tool exists, the arguments
//     satisfy its schema. The loop knows from it which calls are equal, and which may run
//     beside others or again after a crash.
//   - message.ToolCall is the call in the run: its id, the message and the step that it
//     belongs to, and what the policy lets it use. It is judged, approved and executed.
//   - host.CallRequest is the call for a program, whatever starts it: the name inside the
//     program, the files, the time, and whom it may ask.
//   - toolpb.CallRequest is the message of the tool protocol, the contract with programs
//     of other versions and languages. A source with another protocol has its own.
//
// A result has four: the messages of the protocol; host.CallResult, what the program claims;
// Reply, what any source returns, with a code of the closed list; and message.ToolResult,
// what the model reads and the journal keeps: without secrets, cut, and with our footer.
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
	// Object is metadata.name of the Tool; "" for a shipped tool without a manifest.
	Object string
	// Annotations of the manifest.
	Annotations map[string]string

	// Select is set for a Tool that provides several functions, until it is expanded
	// into one definition for each of them; see Expand.
	Select *Selection
	// Of is the call name of the Tool that a function was expanded from; "" for others.
	Of string
	// Hints are what the program claims about the function.
	Hints Hints

	// Facts of its source.
	Facts
	// Kept is the folder of its skill below a folder that no tool may see, which it may
	// mount to read; "" for any other tool.
	Kept string
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
