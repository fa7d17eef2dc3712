package runner

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// Runs returns the ids of the runs of a state folder, the newest first.
func Runs(state string) ([]string, error) {
	found, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return ids, nil
}

// Ended says whether a run has come to its end, so that a resume would only tell
// its result again. Only the end of its journal is read.
func Ended(state, id string) bool {
	e, err := journal.Last(journal.Dir(state, id))
	if err != nil {
		return false
	}
	f, ok := e.Data.(event.RunFinished)
	return ok && f.Phase != view.Suspended
}
