package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// asDocuments splits manifests as a control plane keeps them.
func asDocuments(manifests string) []Document {
	var all []Document
	for i, text := range strings.Split(manifests, "---\n") {
		all = append(all, Document{Name: "object/" + string(rune('a'+i)), Text: []byte(text)})
	}
	return all
}

const emptyRun = "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: one}\nspec: {agentRef: {name: worker}, prompt: go}\n"

func TestObjectsWithoutFilesRun(t *testing.T) {
	state := t.TempDir()
	o := RunOptions{
		Documents: asDocuments(agent("", "- say: done", emptyRun)), ID: "one-123", State: state, Approve: "never", AllowUnsandboxed: true,
	}
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	if out.Run.ID != "one-123" || out.Journal != journal.Dir(state, "one-123") {
		t.Errorf("the run is %s in %s, want the id that was given", out.Run.ID, out.Journal)
	}
	if w := out.Run.Started.Workspace; w.Strategy != string(v1alpha1.StrategyEmpty) || w.Source != "" {
		t.Errorf("the run works on %+v: what is the current folder of a control plane is nobody's project", w)
	}
	if _, err := Run(t.Context(), o); err == nil {
		t.Error("a run was begun a second time under the same id")
	}
	again, err := runs.View(t.Context(), state, "one-123")
	if err != nil || again.Attempt != 1 || again.Finished.Reason != string(reason.Completed) {
		t.Errorf("the second start touched the journal of the first: %+v, %v", again, err)
	}
}

func TestObjectsWithoutFilesHaveAbsolutePaths(t *testing.T) {
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: mine}\nspec:\n  parameters: {type: object}\n  source: {exec: {command: [./mine]}}\n"
	docs := asDocuments(agent("tools: [{name: mine}]", "- say: done", tool))
	found := Judge(t.Context(), docs, nil)
	if !found.HasErrors() || !IsRelativePath(found[0]) || found[0].Position.File != docs[2].Name {
		t.Errorf("found %+v, want the relative path in %s", found, docs[2].Name)
	}
	_, err := Run(t.Context(), RunOptions{Documents: docs, State: t.TempDir(), Approve: "never", AllowUnsandboxed: true})
	if _, ok := errors.AsType[*InvalidError](err); !ok {
		t.Errorf("got %v, want an *InvalidError", err)
	}
}

func TestARunThatIsLeftGoesOn(t *testing.T) {
	dir := t.TempDir()
	slow, marks, begun := filepath.Join(dir, "slow"), filepath.Join(dir, "marks"), filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	// It hangs the first time it is called, and says when it does.
	write(t, slow, "#!/bin/sh\necho x >>"+marks+"\nif [ $(wc -l <"+marks+") = 1 ]; then echo now >"+begun+"; sleep 60; fi\necho fine\n")
	if err := os.Chmod(slow, 0o755); err != nil {
		t.Fatal(err)
	}
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: slow}\nspec:\n  parameters: {type: object}\n  risk: R0\n  retry: Idempotent\n" +
		"  isolation: {minimum: None}\n  source: {exec: {command: [" + slow + "]}}\n"
	docs := asDocuments(agent("tools: [{name: slow}]", "- calls: [{tool: slow, args: {}}]\n- say: 'it is ${last.output}'", tool, emptyRun))
	state, leave := t.TempDir(), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, _ = os.ReadFile(begun)
		close(leave)
	})
	out, err := Run(t.Context(), RunOptions{
		Documents: docs, ID: "one-1", State: state, Approve: "never", AllowUnsandboxed: true, Leave: leave,
	})
	waiting.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if out.Run.Finished != nil || out.Run.Phase != view.Running {
		t.Fatalf("the run has ended (%s, %+v), want it left", out.Run.Phase, out.Run.Finished)
	}
	for e, err := range journal.Read(context.Background(), out.Journal, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Data.(type) {
		case event.RunFinished, event.ToolResult, event.ToolError:
			t.Errorf("the journal of a run that was left tells of %s", e.Type())
		}
	}
	out, err = Resume(t.Context(), ResumeOptions{Ref: "one-1", State: state, Approve: "never"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	if got := out.Result().Output; !strings.HasPrefix(got, "it is fine") {
		t.Errorf("got output %q", got)
	}
	if out.Run.Attempt != 2 {
		t.Errorf("attempt %d, want 2", out.Run.Attempt)
	}
}
