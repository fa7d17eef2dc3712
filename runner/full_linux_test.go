package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// TestARunOnAFullDiskStillHasAnOutcome lets the disk become full at different
// moments: whoever waits for a result gets one, and it is no success.
func TestARunOnAFullDiskStillHasAnOutcome(t *testing.T) {
	for name, at := range map[string]event.Type{"call": event.TypeToolCall, "end": event.TypeWorkspacePatch} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"echo a > b\"}}]\n- say: done\n"), nil)
			out, err := Run(t.Context(), p.options(func(o *RunOptions) {
				o.Approve = "all"
				o.disk.write = func(f *os.File, b []byte) (int, error) {
					n, err := f.Write(b)
					if err == nil && bytes.Contains(b, []byte(`"type":"`+at+`"`)) {
						fill(t, f) // what is written next does not fit
					}
					return n, err
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

// fill makes the disk full for a file that is open.
func fill(t *testing.T, f *os.File) {
	t.Helper()
	full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(full)
	if err := unix.Dup3(full, int(f.Fd()), unix.O_CLOEXEC); err != nil {
		t.Error(err)
	}
}

// TestADiskThatFillsWhileAnOutputIsStoredLeavesTheRunResumable: the output of a
// call goes into a blob, for which there is no room; later there is.
func TestADiskThatFillsWhileAnOutputIsStoredLeavesTheRunResumable(t *testing.T) {
	const big = "head -c 300000 /dev/zero | tr '\\\\0' x"
	p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"echo a > b\"}}]\n- calls: [{tool: bash, args: {command: \""+big+"\"}}]\n- say: done\n"), nil)
	full := true
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Approve = "all"
		o.disk.write = func(f *os.File, b []byte) (int, error) {
			if full && len(b) > 100_000 && strings.HasPrefix(filepath.Base(f.Name()), ".blob-") {
				n, _ := f.Write(b[:4096])
				return n, unix.ENOSPC
			}
			return f.Write(b)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if f := out.Run.Finished; f == nil || f.Phase == view.Succeeded || !strings.Contains(f.Message, "no space left") || !strings.Contains(f.Hint, "agentctl resume run/"+out.Run.ID) {
		t.Errorf("ended %+v", f)
	}
	if list, err := runs.List(t.Context(), p.state); err != nil || len(list) != 1 || list[0].Phase != runs.Interrupted {
		t.Fatalf("the run stands as %+v, %v", list, err)
	}
	full = false
	again, err := Resume(t.Context(), ResumeOptions{Ref: out.Run.ID, State: p.state, Approve: "all"})
	if err != nil {
		t.Fatal(err)
	}
	if f := again.Run.Finished; f == nil || f.Phase != view.Succeeded {
		t.Errorf("resumed: %+v", f)
	}
	first := 0
	for e, err := range journal.Read(t.Context(), again.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Data.(event.ToolCall); ok && strings.Contains(string(c.Args), "echo a") {
			first++
		}
	}
	if first != 1 {
		t.Errorf("the call that had a result ran %d times", first)
	}
}
