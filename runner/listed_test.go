package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// A program that leaves more than can be listed hides what else it did, unless that
// is an error wherever somebody looks.
func TestChangesThatCannotBeListedAreAnErrorEverywhere(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		p := newPlace(t, agent("tools: [{name: bash}]", `
- calls: [{tool: bash, args: {command: "echo evil > a.txt; for i in 1 2 3 4 5 6 7 8 9; do echo x > f$i; done"}}]
- say: nothing happened
`), map[string]string{"a.txt": "one\n"})
		out, err := Run(t.Context(), p.options(func(o *RunOptions) { o.Approve, o.maxListed, o.InPlace = "all", 5, inPlace }))
		if err != nil {
			t.Fatal(err)
		}
		want(t, out, reason.WorkspaceUnavailable)
		if f := out.Run.Finished; f.Phase != view.Failed || !strings.Contains(f.Message, "more than 5 files") || !strings.Contains(f.Hint, out.Run.Started.Workspace.Dir) {
			t.Errorf("finished %+v", f)
		}
		if r := out.Result(); !strings.Contains(r.ChangesError, "more than 5 files") || r.Output == "" {
			t.Errorf("result %+v", r)
		}
		c, err := runs.Diff(t.Context(), p.state, journal.Latest)
		if unknown, ok := errors.AsType[*runs.UnknownError](err); !ok || reason.Of(err) != reason.WorkspaceUnavailable || c == nil || unknown.Dir == "" {
			t.Errorf("diff: %+v, %v", c, err)
		}
		if _, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: journal.Latest, By: "jane@test"}); reason.Of(err) != reason.WorkspaceUnavailable {
			t.Errorf("apply: %v", err)
		}
	}
}

// What is wrong with the files is known before a model is paid for its answer.
func TestFilesThatCannotBeHadAreAnErrorBeforeAModelIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, want, hint string
		files                map[string]string
	}{
		"too large":           {"workspace: {sizeLimit: 1Ki}", "1024 bytes", "sizeLimit", map[string]string{"a.txt": strings.Repeat("x", 2000)}},
		"too large, in place": {"workspace: {sizeLimit: 1Ki, strategy: InPlace}", "1024 bytes", "sizeLimit", map[string]string{"a.txt": strings.Repeat("x", 2000)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: read}]", "- say: an answer that costs money\n", `apiVersion: agentctl.dev/v1alpha1
kind: Run
metadata: {name: r}
spec:
  agentRef: {name: worker}
  `+c.manifest), c.files)
			out, err := Run(t.Context(), p.options())
			if err != nil {
				t.Fatal(err)
			}
			want(t, out, reason.WorkspaceUnavailable)
			if f := out.Run.Finished; f.Steps != 0 || !strings.Contains(f.Message, c.want) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("finished %+v", f)
			}
			if left, _ := os.ReadDir(filepath.Dir(out.Run.Started.Workspace.Dir)); name == "too large" && len(left) > 1 {
				t.Errorf("left of the copy: %v", left)
			}
		})
	}
}

// The files of a run have a limit of their own: a call that passes it is ended, one
// that removes files is not, and one that was too quick for the watch is an error, too.
func TestACallThatOutgrowsTheWorkspaceIsEnded(t *testing.T) {
	steps := "- calls: [{tool: bash, args: {command: 'while :; do head -c 4M /dev/zero >> big; done'}}]\n" +
		"- calls: [{tool: bash, args: {command: 'rm big'}}]\n- calls: [{tool: bash, args: {command: 'head -c 40M /dev/zero > big'}}]\n- say: done\n"
	run := "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: grow}\nspec:\n  agentRef: {name: worker}\n  prompt: go\n  workspace: {growthLimit: 20Mi}\n"
	p := newPlace(t, agent("tools: [{name: bash}]\npolicyRefs: [{name: p}]", steps, run, policyOf("rules: [{name: all, action: allow}]")), map[string]string{"a.txt": "x"})
	out := p.run(t)
	want(t, out, reason.Completed)
	for i, ended := range []bool{true, false, true} {
		c := out.Run.Call(call(t, out, i).ID)
		if (c.Result.Code == message.CodeOutputLimit) != ended || strings.Contains(c.Result.Text, "growthLimit is 20 MiB") != ended {
			t.Errorf("call %d: %s, %q", i, c.Result.Code, c.Result.Text)
		}
	}
}
