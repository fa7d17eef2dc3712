package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// BlobPrefix begins a path that names the full text of an output of this run.
// It is not a path of the host, so no exception for outside paths is needed.
const BlobPrefix = "blob:"

// blobReads answers reads of an output that had to be cut.
func blobReads() HostTool {
	takes := func(call message.ToolCall) bool {
		args, err := readArgsOf(call)
		return err == nil && strings.HasPrefix(args.Path, BlobPrefix)
	}
	return HostTool{Tool: "read", Takes: takes, Answer: readBlob}
}

// readArgs are the arguments of read.
type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func readArgsOf(call message.ToolCall) (args readArgs, err error) {
	err = json.Unmarshal(call.Args, &args)
	return args, err
}

// readBlob shows lines of a blob, which was redacted before it was written, or an
// attachment again that was left out of the conversation.
func readBlob(_ context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	args, err := readArgsOf(call)
	if err != nil {
		return nil, err
	}
	b, err := h.Blobs.GetBlob(strings.TrimPrefix(args.Path, BlobPrefix))
	if err != nil {
		return &message.ToolResult{Code: message.CodeTool, Text: err.Error()}, nil //nolint:nilerr // a failure of the tool is a result
	}
	if mime, err := MediaType(b); err == nil {
		file := message.File{Mime: mime, Filename: "blob", URL: args.Path, Size: int64(len(b))}
		text := fmt.Sprintf("%s: %s, %d bytes", args.Path, mime, len(b))
		return &message.ToolResult{Text: text, Output: text, Title: args.Path, Attachments: []message.File{file}}, nil
	}
	lines := strings.Split(string(b), "\n")
	from := max(args.Offset, 1)
	if from > len(lines) {
		return &message.ToolResult{Code: message.CodeTool, Text: fmt.Sprintf("offset %d is past the end: there are %d lines", from, len(lines))}, nil
	}
	to := len(lines)
	if args.Limit > 0 {
		to = min(to, from-1+args.Limit)
	}
	var text strings.Builder
	for i := from - 1; i < to; i++ {
		fmt.Fprintf(&text, "%d: %s\n", i+1, lines[i])
	}
	w := h.Window
	w.KeepHead = true
	shown, _, left := w.Cut(strings.TrimSuffix(text.String(), "\n"))
	result := &message.ToolResult{Output: shown, Text: shown, Title: args.Path}
	if next := from + strings.Count(shown, "\n") + 1; left > 0 && next <= len(lines) {
		result.Text += fmt.Sprintf("\n[go on with offset %d; there are %d lines]", next, len(lines))
	}
	return result, nil
}
