package loop

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
)

// snapshot records the files after a step in which a call may have changed them. A step
// that only reads costs nothing.
func (l *loop) snapshot(ctx context.Context) {
	if l.Files != nil && slices.ContainsFunc(l.current.Calls(), mayHaveWritten) {
		l.Files.Snapshot(ctx, l.View.Steps)
	}
}

// mayHaveWritten reports whether a call may have changed files. A run that a call has
// started may work on the same files.
func mayHaveWritten(c *message.ToolPart) bool {
	return c.Result != nil && (c.Result.Writes || c.Result.Child != nil)
}
