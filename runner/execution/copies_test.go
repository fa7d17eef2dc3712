package execution

import (
	"strconv"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"

	"github.com/google/go-cmp/cmp"
)

func TestWhatCannotBeTakenOverIsNotOffered(t *testing.T) {
	files := func(n int, name string) (all []event.FileChange) {
		for i := range n {
			all = append(all, event.FileChange{Path: name + strconv.Itoa(i), Change: "added"})
		}
		return all
	}
	for name, c := range map[string]struct {
		phase   string
		changes event.WorkspacePatch
		want    message.CopyChanges
	}{
		"nothing": {view.Succeeded, event.WorkspacePatch{}, message.CopyChanges{}},
		"both": {
			view.Succeeded,
			event.WorkspacePatch{Files: []event.FileChange{{Path: "a", Change: "modified"}, {Path: "b", Change: "deleted"}, {Path: "c", Change: "added"}}},
			message.CopyChanges{Changed: []string{"a", "c"}, Deleted: []string{"b"}},
		},
		"failed":    {view.Failed, event.WorkspacePatch{Files: files(1, "f")}, message.CopyChanges{Unmergeable: "the agent has not succeeded"}},
		"not known": {view.Succeeded, event.WorkspacePatch{Files: files(1, "f"), Error: "the folder is hidden"}, message.CopyChanges{Unmergeable: "the folder is hidden"}},
		"too many": {
			view.Succeeded,
			event.WorkspacePatch{Files: files(1000, "f"), Omitted: 1},
			message.CopyChanges{Unmergeable: "there are 1001 files; at most 1000, with names of 65536 bytes altogether, are taken over"},
		},
		"too long": {
			view.Succeeded,
			event.WorkspacePatch{Files: files(100, strings.Repeat("f", 700))},
			message.CopyChanges{Unmergeable: "there are 100 files; at most 1000, with names of 65536 bytes altogether, are taken over"},
		},
		"not UTF-8": {
			view.Succeeded,
			event.WorkspacePatch{Files: append(files(1, "f"), event.FileChange{Path: "x\uFFFD", Change: "added"})},
			message.CopyChanges{Unmergeable: "the name of \"x\uFFFD\" is not UTF-8"},
		},
	} {
		v := &view.Run{Changes: c.changes, Finished: &event.RunFinished{Phase: c.phase}}
		if diff := cmp.Diff(&c.want, CopyChanges(v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
