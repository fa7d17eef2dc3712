package runs

import (
	"context"
	"os"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
)

// Resumable reports whether a resume could make progress: the run is not suspended, or
// each of its waiting calls has an answer in the inbox. While there is no answer it reads
// one event.
func Resumable(ctx context.Context, state, id string) (bool, error) {
	dir := journal.Dir(state, id)
	last, err := journal.Last(dir)
	if err != nil {
		return false, err
	}
	if f, ended := last.Data.(event.RunFinished); !ended || f.Phase != view.Suspended {
		return true, nil
	}
	if left, err := os.ReadDir(approval.InboxDir(dir)); err != nil || len(left) == 0 {
		return false, nil //nolint:nilerr // a run without answers has no inbox
	}
	found := journal.Found{ID: id, Dir: dir}
	v := &view.Run{}
	if err := Fold(ctx, found, v); err != nil {
		return false, err
	}
	for _, w := range waitingIn(found, v) {
		if w.Left == "" {
			return false, nil
		}
	}
	return true, nil
}

// AnswerLeft reports whether there is an answer for a waiting call of the run. While the
// inbox is empty it only reads a folder.
func AnswerLeft(ctx context.Context, state, id string) (bool, error) {
	dir := journal.Dir(state, id)
	if left, err := os.ReadDir(approval.InboxDir(dir)); err != nil || len(left) == 0 {
		return false, nil //nolint:nilerr // a run without answers has no inbox
	}
	found := journal.Found{ID: id, Dir: dir}
	v := &view.Run{}
	if err := Fold(ctx, found, v); err != nil {
		return false, err
	}
	for _, w := range waitingIn(found, v) {
		if w.Left != "" {
			return true, nil
		}
	}
	return false, nil
}
