package builtin

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// The tools that run coding agents of others. OpencodeRun is the first with one of them, and
// with the names that callers of other programs know.
const (
	CodingAgent = "coding_agent"
	OpencodeRun = "opencode_run"
)

// coding runs the program of another agent: it executes what a model says that no rule here
// judges, on a copy of the files. Exclusive: one program at a time.
var coding = Tool{
	Name: CodingAgent, Risk: v1alpha1.RiskR3,
	Effects:  []v1alpha1.Effect{v1alpha1.EffectRead, v1alpha1.EffectWrite, v1alpha1.EffectExecute, v1alpha1.EffectNetwork},
	Category: v1alpha1.CategoryExecute, Concurrency: v1alpha1.ConcurrencyExclusive, Retry: v1alpha1.RetryNever,
	Access: v1alpha1.AccessReadWrite, Network: offline, KeepHead: true, Paths: []string{"path"}, Host: true,
	Description: "Give a piece of work to the program of another coding agent. It sees only the prompt and a copy of the files. " +
		"Mode diff: it returns what it has changed there, and task_apply takes that over. Mode report: it changes nothing and returns a text. " +
		"Mode inplace, where it is allowed: what it has changed is taken over at once, if it succeeds.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"agent":{"type":"string","enum":["opencode","codex","claude"],"description":"Default: the first that this tool declares"},` +
		`"prompt":{"type":"string","minLength":1,"maxLength":1048576,"description":"The work, complete in itself"},` +
		`"mode":{"type":"string","enum":["diff","inplace","report"],"description":"Default: diff"},` +
		`"path":{"type":"string","minLength":1,"maxLength":4096,"description":"The folder to copy, relative to the workspace. Default: all of it"},` +
		`"paths":{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":4096},"description":"The files and folders, below path, that the work is about: a hint for the agent"},` +
		`"model":{"type":"string","minLength":1,"maxLength":253,"description":"Name of the Model that it asks, of those that this tool declares"},` +
		`"timeout":{"type":"integer","minimum":10,"maximum":3600,"description":"Seconds. Default: 300"},` +
		`"session":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$","description":"Continue the conversation of an earlier call in this run, by the session of its result"},` +
		`"additional_args":` + additionalArgs + `},` +
		`"required":["prompt"],"additionalProperties":false}`),
}

const additionalArgs = `{"type":"array","maxItems":16,"items":{"type":"string","maxLength":200},"description":"Further arguments of the program, of a short list"}`

// opencodeRun is coding with opencode.
var opencodeRun = func() Tool {
	t := coding
	t.Name, t.Paths = OpencodeRun, []string{"workspace_path"}
	t.Description = "Give a coding task to OpenCode. It works on a copy of a folder. Mode diff: it returns what it has changed there, and task_apply takes that over. " +
		"Mode report: it changes nothing and returns a text. Mode inplace, where it is allowed: what it has changed is taken over at once, if it succeeds."
	t.Parameters = json.RawMessage(`{"type":"object","properties":{` +
		`"workspace_path":{"type":"string","minLength":1,"maxLength":4096,"description":"The folder to work on, in the workspace; . is all of it"},` +
		`"task_prompt":{"type":"string","minLength":1,"maxLength":1048576,"description":"The task, complete in itself"},` +
		`"timeout_seconds":{"type":"integer","minimum":10,"maximum":3600,"description":"Default: 300"},` +
		`"output_mode":{"type":"string","enum":["diff","inplace","report"],"description":"Default: diff"},` +
		`"additional_args":` + additionalArgs + `},` +
		`"required":["workspace_path","task_prompt"],"additionalProperties":false}`)
	return t
}()

// Codes reports whether a shipped tool runs coding agents of others.
func Codes(name string) bool { return name == CodingAgent || name == OpencodeRun }

// Coding is what a Tool says about coding agents of others; nil for none.
func Coding(s *v1alpha1.ToolSource) *v1alpha1.CodingSource {
	if s.Builtin == nil {
		return nil
	}
	return s.Builtin.Coding
}

// CodingModels are the names of the Models that a Tool for coding agents of others names.
func CodingModels(s *v1alpha1.ToolSource) (names []string) {
	declared := Coding(s)
	if declared == nil {
		return nil
	}
	for _, p := range declared.Programs {
		if p.ModelRef != nil {
			names = append(names, p.ModelRef.Name)
		}
	}
	return names
}
