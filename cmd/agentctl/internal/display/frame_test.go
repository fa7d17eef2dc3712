package display

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

func TestFooterNamesSomeOfManyFiles(t *testing.T) {
	for _, c := range []struct {
		reason      string
		files       int
		named, more string
	}{
		{"all of a few", mostFiles, fmt.Sprintf("f%d\n", mostFiles-1), ""},
		{"a build leaves thousands", 1500, fmt.Sprintf("f%d\n", mostFiles-1), "and 1,470 more: agentctl diff --stat run/x --state /s\n"},
	} {
		run := &view.Run{ID: "x"}
		for i := range c.files {
			run.Changes.Files = append(run.Changes.Files, event.FileChange{Path: fmt.Sprintf("f%d", i), Change: "added"})
		}
		text := footer(&Screen{}, run, "/j", Place{State: "/s"})
		if !strings.Contains(text, c.named) || !strings.Contains(text, c.more) || strings.Contains(text, " more: ") != (c.more != "") || strings.Count(text, "  A ") != mostFiles {
			t.Errorf("%s:\n%s", c.reason, text)
		}
	}
}
