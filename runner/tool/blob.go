package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// BlobPrefix begins a path that names the full text of an output of this run.
// It is no path of the host, so no exception for outside paths is needed.
const BlobPrefix = "blob:"

// readBlob answers a read of an output that had to be cut. It starts no program.
func (r *Registry) readBlob(d *Definition, call message.ToolCall) (*message.ToolResult, bool) {
	if b := d.Spec.Source.Builtin; b == nil || b.Name != "read" {
		return nil, false
	}
	var args struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	if json.Unmarshal(call.Args, &args) != nil || !strings.HasPrefix(args.Path, BlobPrefix) {
		return nil, false
	}
	b, err := r.Blobs.GetBlob(strings.TrimPrefix(args.Path, BlobPrefix))
	if err != nil {
		return &message.ToolResult{Code: message.CodeTool, Text: err.Error()}, true
	}
	lines := strings.Split(string(b), "\n")
	from := max(args.Offset, 1)
	if from > len(lines) {
		return &message.ToolResult{Code: message.CodeTool, Text: fmt.Sprintf("offset %d is past the end: there are %d lines", from, len(lines))}, true
	}
	to := len(lines)
	if args.Limit > 0 {
		to = min(to, from-1+args.Limit)
	}
	var text strings.Builder
	for i := from - 1; i < to; i++ {
		fmt.Fprintf(&text, "%d: %s\n", i+1, lines[i])
	}
	w := d.window()
	w.KeepHead = true
	shown, _, left := w.Cut(strings.TrimSuffix(text.String(), "\n"))
	result := &message.ToolResult{Output: shown, Text: shown, Title: args.Path}
	if next := from + strings.Count(shown, "\n") + 1; left > 0 && next <= len(lines) {
		result.Text += fmt.Sprintf("\n[go on with offset %d; there are %d lines]", next, len(lines))
	}
	return result, true
}
