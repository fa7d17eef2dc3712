package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/journal"
)

// TestOnlyOurProgramIsInterrupted: an interrupt means to agentctl the end of its one
// run. To a program that has others, as agentd and this test have, it means more.
func TestOnlyOurProgramIsInterrupted(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "runs", "r-1")
	w, err := journal.Create(context.Background(), journal.Options{Dir: dir, Run: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(event.Event{Message: "m", Data: event.TextEnd{Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	id, err := Cancel(state, "run/r-1")
	if _, ok := errors.AsType[*reason.UsageError](err); !ok || id != "r-1" || !strings.Contains(err.Error(), "executed by "+filepath.Base(os.Args[0])+" (process ") {
		t.Errorf("executed by this test: %q, %v", id, err)
	}
	// A lock without a valid content is no reason to interrupt a process.
	for name, text := range map[string]string{"garbage": "me", "a group": "-1 \"agentctl\"\n", "everybody": "0 \"agentctl\"\n", "no name": "1 agentctl\n"} {
		if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Cancel(state, "r-1"); err == nil || !strings.Contains(err.Error(), "is executed by") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The content of the file does not count when it is not locked: the number may be that
	// of another process now.
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("1 \"agentctl\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := Cancel(state, "r-1"); id != "r-1" || err == nil || !strings.Contains(err.Error(), "does not go on") {
		t.Errorf("no process executes it: %q, %v", id, err)
	}
	if id, err := Cancel(state, "r-2"); id != "" || err == nil {
		t.Errorf("an unknown run: %q, %v", id, err)
	}
}
