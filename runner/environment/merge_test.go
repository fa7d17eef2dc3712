package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/workspace"
)

// warnings is a journal of which only the warnings are looked at.
type warnings struct {
	Journal
	texts []string
}

func (w *warnings) Append(e event.Event) (event.Event, error) {
	if d, ok := e.Data.(event.Warning); ok {
		w.texts = append(w.texts, d.Message)
	}
	return e, nil
}

// TestAnInterruptedMergeIsUndoneWhenTheRunContinues: the call may not be made again, because
// the run ends first or because it is denied now.
func TestAnInterruptedMergeIsUndoneWhenTheRunContinues(t *testing.T) {
	const stage = ".agentctl-apply-0123456789abcdef"
	for name, c := range map[string]struct {
		phase string
		warns string
	}{
		"before a file has changed": {"staging", ""},
		"a record that is damaged":  {"no such phase", `the phase "no such phase" is unknown`},
	} {
		t.Run(name, func(t *testing.T) {
			files, dir, j := t.TempDir(), filepath.Join(t.TempDir(), "[run]"), &warnings{}
			write(t, filepath.Join(files, stage, "new-0"), "half")
			o := &Options{Dir: dir, Run: "lead-1", Journal: j, Workspace: workspace.Spec{Strategy: v1alpha1.StrategyInPlace, Source: files}}
			owner := &Files{o: o}
			lent := &Files{o: &Options{Dir: t.TempDir()}, lender: owner}
			write(t, lent.mergeRecord("helper-1", "call_1"), fmt.Sprintf(
				`{"source":%q,"stage":%q,"phase":%q,"operations":[{"kind":"add","path":"a.txt","index":0,"new":{"type":"file","mode":420}}]}`, files, stage, c.phase))
			undoMerges(o)
			if text := strings.Join(j.texts, "\n"); !strings.Contains(text, c.warns) || (text == "") != (c.warns == "") {
				t.Errorf("warnings: %q", text)
			}
			if _, err := os.Lstat(filepath.Join(files, stage)); os.IsNotExist(err) != (c.warns == "") {
				t.Errorf("the new contents: %v", err)
			}
		})
	}
}
