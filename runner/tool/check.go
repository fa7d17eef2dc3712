package tool

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Check is what an agent checks changed files with, and how its program is contained. It
// is no tool: no model is offered it.
type Check struct {
	v1alpha1.Diagnostic
	// Program is contained as a tool of that definition would be.
	Program Definition
	// Reach is what it reaches besides the files of the run; "" is nothing.
	Reach string
}

// Programs are the definitions of some checks.
func Programs(checks []Check) []Definition {
	all := make([]Definition, len(checks))
	for i := range checks {
		all[i] = checks[i].Program
	}
	return all
}

// Checks looks at files of the workspace that a call has changed, and returns what was
// found, as data and as the text for the model.
type Checks func(ctx context.Context, call message.ToolCall, files []string) ([]message.Check, string)

// writers are the shipped tools whose results say which files they have changed.
var writers = []string{"edit", "write", "patch", "workspace_fs", mergeTool}

// diagnose adds to the result of a call that has changed files what the checks of the
// agent say about them. Whether the call has succeeded stays as it is.
func (r *Registry) diagnose(ctx context.Context, d *Definition, call message.ToolCall, result *message.ToolResult) {
	if r.Checks == nil || result.Failed() || !result.Writes || !slices.Contains(writers, d.Shipped) {
		return
	}
	files := changed(result.Metadata)
	if len(files) == 0 {
		return
	}
	var text string
	if result.Diagnostics, text = r.Checks(ctx, call, files); text == "" {
		return
	}
	// Rules about results read the output: what a checker has read is in it, too.
	result.Text, result.Output = join(result.Text, text), join(result.Output, text)
}

func join(text, more string) string {
	if text == "" {
		return more
	}
	return text + "\n" + more
}

// changed are the files in the workspace that a result names.
func changed(metadata json.RawMessage) (files []string) {
	type file struct{ Path, From string }
	var data struct {
		file
		Files []file
	}
	if json.Unmarshal(metadata, &data) != nil {
		return nil
	}
	for _, f := range append(data.Files, data.file) {
		for _, name := range []string{f.Path, f.From} {
			if name = filepath.Clean(name); filepath.IsLocal(name) && name != "." && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files
}
