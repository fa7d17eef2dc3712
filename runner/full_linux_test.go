package runner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// TestARunOnAFullDiskStillHasAnOutcome lets the disk become full at different
// moments: whoever waits for a result gets one, and it is no success.
func TestARunOnAFullDiskStillHasAnOutcome(t *testing.T) {
	for name, at := range map[string]event.Type{"call": event.TypeToolCall, "end": event.TypeWorkspacePatch} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"echo a > b\"}}]\n- say: done\n"), nil)
			out, err := Run(t.Context(), p.options(func(o *RunOptions) {
				o.Approve = "all"
				o.Events = func(e event.Event) {
					if e.Type() == at {
						fill(t, p.state)
					}
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := journal.Verify(t.Context(), out.Journal); err != nil {
				t.Errorf("the journal is damaged: %v", err)
			}
			f := out.Run.Finished
			if f == nil || out.Run.Phase != view.Failed || out.ExitCode() != 1 || f.Reason != string(reason.Internal) || !strings.Contains(f.Message, ".jsonl: ") {
				t.Errorf("ended %+v, phase %s", f, out.Run.Phase)
			}
		})
	}
}

// fill makes the disk full for every journal below a folder that is open.
func fill(t *testing.T, state string) {
	t.Helper()
	full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(full)
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	filled := 0
	for _, link := range open {
		path, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(path, state) || filepath.Ext(path) != ".jsonl" {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(full, fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		filled++
	}
	if filled == 0 {
		t.Error("no journal is open")
	}
}
