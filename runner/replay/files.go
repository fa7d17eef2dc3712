package replay

import (
	"context"

	"agentctl.dev/agentctl/api/event"
)

// Files returns the states of the workspace as they were recorded. It implements
// loop.Files.
type Files struct{ p *Player }

// Files returns the workspace of the replay, which has no files.
func (p *Player) Files() *Files { return &Files{p} }

// Snapshot does nothing.
func (*Files) Snapshot(context.Context, int) {}

// State returns the recorded state for the call, "" if there is none.
func (f *Files) State(_ context.Context, call string) string {
	_, next := f.p.upcoming(call)
	d, _ := next.Data.(event.ToolInputEnd)
	return d.Workspace
}
