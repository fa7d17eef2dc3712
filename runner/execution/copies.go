package execution

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/workspace"
)

// Bounds of what one call takes over from a copy: each file is judged by name.
const (
	mostMerged     = 1000
	mostMergedText = 64 << 10
)

// CopyChanges are what a child has changed in its copy, as far as the run of the call needs
// to know it: the names of the files, and why they cannot be merged.
func CopyChanges(v *view.Run) *message.CopyChanges {
	c := &message.CopyChanges{}
	text := 0
	for _, f := range v.Changes.Files {
		switch {
		case strings.ContainsRune(f.Path, utf8.RuneError):
			c.Unmergeable = fmt.Sprintf("the name of %q is not UTF-8", f.Path)
		case f.Change == workspace.Deleted:
			c.Deleted = append(c.Deleted, f.Path)
		default:
			c.Changed = append(c.Changed, f.Path)
		}
		text += len(f.Path)
	}
	switch n := len(v.Changes.Files) + v.Changes.Omitted; {
	case v.Finished.Phase != view.Succeeded:
		c.Unmergeable = "the agent has not succeeded"
	case v.Changes.Error != "":
		c.Unmergeable = v.Changes.Error
	case n > mostMerged || text > mostMergedText:
		c.Unmergeable = fmt.Sprintf("there are %d files; at most %d, with names of %d bytes altogether, are taken over", n, mostMerged, mostMergedText)
	}
	if c.Unmergeable != "" {
		c.Changed, c.Deleted = nil, nil
	}
	return c
}
