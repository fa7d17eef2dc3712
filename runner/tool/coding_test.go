package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// codingTool is a shipped tool for coding agents of others, as a run has it.
func codingTool(t *testing.T, name string, s *v1alpha1.CodingSource) Definition {
	t.Helper()
	b, ok := builtin.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	return Definition{
		Name: name, Parameters: b.Parameters, Facts: Facts{Kind: "builtin", Shipped: name, Host: true, KeepHead: true, Coding: s},
		Spec: v1alpha1.ToolSpec{Limits: v1alpha1.ToolLimits{OutputBytes: 51200, OutputLines: 2000}},
	}
}

// The arguments that are judged and approved are complete: nothing is added to them later.
func TestCodingArgumentsAreCompletedOrRefused(t *testing.T) {
	all := &v1alpha1.CodingSource{Modes: []v1alpha1.CodingMode{v1alpha1.CodingInPlace}, Programs: []v1alpha1.CodingProgram{{Agent: "claude"}}}
	for _, c := range []struct {
		tool, args, want string
		source           *v1alpha1.CodingSource
	}{
		{"opencode_run", `{"workspace_path":"./a//b/","task_prompt":"p"}`, `{"workspace_path":"a/b","task_prompt":"p","timeout_seconds":300,"output_mode":"diff"}`, nil},
		{"coding_agent", `{"prompt":"p"}`, `{"agent":"opencode","prompt":"p","mode":"diff","path":".","timeout":300}`, nil},
		{"coding_agent", `{"prompt":"p","mode":"inplace","timeout":3600}`, `{"agent":"claude","prompt":"p","mode":"inplace","path":".","timeout":3600}`, all},
		{"coding_agent", `{"prompt":"p"}`, "error: mode diff is not among those of the Tool", all},
		{"coding_agent", `{"prompt":"p","mode":"inplace","agent":"codex"}`, `error: agent "codex" is not declared by the Tool`, all},
		{"coding_agent", `{"prompt":"p","paths":["a","../b"]}`, "error: path \"../b\": .. leads out", nil},
		{"coding_agent", `{"prompt":"p","path":"a/../../b"}`, "error: path", nil},
		{"coding_agent", `{"prompt":"p","path":"a/.git/hooks"}`, "error: path", nil},
		{"coding_agent", `{"prompt":"p","path":"a\\b"}`, "error: path", nil},
		{"coding_agent", `{"prompt":"p","path":"/etc"}`, "error: path", nil},
		{"coding_agent", `{"prompt":"p","timeout":9}`, "error: ", nil},
		{"coding_agent", `{"prompt":"p","timeout":3601}`, "error: ", nil},
		{"coding_agent", `{"prompt":"p","session":"--help"}`, "error: ", nil},
		{"coding_agent", `{"prompt":"p","session":"a b"}`, "error: ", nil},
		{"opencode_run", `{"workspace_path":"."}`, "error: ", nil},
		{"opencode_run", `{"workspace_path":".","task_prompt":"p","agent":"codex"}`, "error: ", nil},
		{"opencode_run", `{"workspace_path":".","task_prompt":"p","output_mode":"inplace"}`, "error: mode inplace", nil},
		{"opencode_run", `{"workspace_path":".","task_prompt":"p","additional_args":["--model","x"]}`, "error: additional_args", nil},
	} {
		r := registry(t, nil, codingTool(t, c.tool, c.source))
		checked, err := r.Check(message.CallRequest{Tool: c.tool, Args: c.args})
		got := string(checked.Args)
		if err != nil {
			got = "error: " + strings.TrimPrefix(err.Error(), "schema: ")
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s:\n got %s\nwant %s", c.tool, c.args, got, c.want)
		}
	}
}

// opencode_run has the fields that callers of other programs know, and what is not known is
// null.
func TestTheResultOfACodingAgent(t *testing.T) {
	end := &CodingEnd{
		Coding: message.Coding{
			Agent: "opencode", Version: "1.18.33", Mode: "diff", Outcome: message.CodingCompleted, Change: "sha256:c", Diff: "sha256:d", Log: "sha256:l", Before: "sha256:b",
			Changes: &message.CopyChanges{Changed: []string{"a.go"}}, Requests: 2, Tokens: message.Usage{Input: 10, Output: 5}, Unpriced: true,
		},
		Text: "done", Files: []CodedFile{{Path: "a.go", Status: "modified"}}, Added: 2, Removed: 1, Took: 1500 * time.Millisecond, Workspace: "repo_run-1",
		Stdout: coder.Printed{Kept: []byte(strings.Repeat("ä", 5000)), Total: 10000},
	}
	d := codingTool(t, "opencode_run", nil)
	r := registry(t, nil, d)
	r.Coders = func(context.Context, *Definition, message.ToolCall, CodingTask, func(string)) (*CodingEnd, error) {
		return end, nil
	}
	call := message.ToolCall{ID: "call_1_1", Tool: "opencode_run", Args: []byte(`{"workspace_path":".","task_prompt":"p","timeout_seconds":10,"output_mode":"diff"}`)}
	got, err := r.Run(t.Context(), call, func(string) {})
	if err != nil || got.Failed() || got.Coding == nil || got.ExitCode == nil || *got.ExitCode != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got.Output), &fields); err != nil {
		t.Fatalf("the result is no JSON: %v\n%s", err, got.Output)
	}
	for name, want := range map[string]string{
		"success": "true", "exit_code": "0", "diff_summary": `"1 file changed, 2 lines added, 1 line removed"`, "duration_ms": "1500", "stderr_excerpt": `""`,
		"stdout_excerpt": `"` + strings.Repeat("ä", 2048) + `"`,
	} {
		if string(fields[name]) != want {
			t.Errorf("%s is %s, want %s", name, fields[name], want)
		}
	}
	var files []string
	if err := json.Unmarshal(fields["changed_files"], &files); err != nil || len(files) != 1 || files[0] != "a.go" {
		t.Errorf("changed_files %s, %v", fields["changed_files"], err)
	}
	if !strings.Contains(string(fields["usage"]), `"cost": null`) {
		t.Errorf("a cost that is not known is not null: %s", fields["usage"])
	}
	end.Outcome, end.Why, end.Exit = message.CodingTimeout, "it was ended after 10s", coder.Exit{Code: -1, Signal: "killed"}
	got, err = r.Run(t.Context(), call, func(string) {})
	if err != nil || got.Code != message.CodeTimeout || !strings.Contains(got.Output, `"exit_code": null`) || !strings.Contains(got.Output, `"success": false`) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatAPersonReadsWhoIsAskedAboutACodingAgent(t *testing.T) {
	d := codingTool(t, "opencode_run", nil)
	claims := Claims([]Definition{d})
	text := claims(message.ToolCall{Tool: "opencode_run", Args: []byte(`{"workspace_path":"src","task_prompt":"p","timeout_seconds":60,"output_mode":"report"}`)})
	for _, part := range []string{"opencode 1.18.33", "a copy of src", "at most 1m0s", "it may change nothing"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}
