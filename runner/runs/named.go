package runs

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// Latest is the name of the run that was started last.
const Latest = journal.Latest

// Named lists the runs of a state folder that a name may mean. An id and @latest mean
// exactly one, which exact reports; any other name means the runs whose ids begin with it,
// the newest first, and there may be none.
func Named(state, name string) (ids []string, exact bool, err error) {
	found, err := journal.FindRun(state, name)
	if err == nil && (name == Latest || found.ID == name) {
		return []string{found.ID}, true, nil
	}
	all, listed := journal.List(state)
	if listed != nil {
		return nil, false, listed
	}
	for _, f := range all {
		if name != "" && strings.HasPrefix(f.ID, name) {
			ids = append(ids, f.ID)
		}
	}
	return slices.Clip(ids), false, nil
}

// NotNamed is the error for a name that means no run of a state folder, with similar
// names.
func NotNamed(state, name string) error {
	_, err := journal.FindRun(state, name)
	if err == nil {
		return nil
	}
	return &reason.UsageError{Err: err}
}
