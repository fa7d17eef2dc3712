package environment

import (
	"context"
	"time"
)

// stateTime bounds how long the loop guard waits for the state of the workspace.
// Without one a call that may write counts as one that did.
const stateTime = 2 * time.Second

// unknownState is the state of files that could not be looked at in time.
const unknownState = "?"

// State returns an identity of the contents of the workspace, for the detection of a run
// that is stuck.
func (f *Files) State(ctx context.Context, _ string) string {
	ctx, cancel := context.WithTimeout(ctx, stateTime)
	defer cancel()
	state, err := f.files.State(ctx)
	if err != nil {
		return unknownState
	}
	return state
}
