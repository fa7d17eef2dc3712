package builtin

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// task starts a subagent. What the subagent does is judged there, call by call; a call of
// task is the decision to delegate. It may be repeated after a crash: its key leads to the
// run that it has started.
var task = Tool{
	Name: "task", Risk: v1alpha1.RiskR1,
	Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryKeyed,
	Access: v1alpha1.AccessNone, Network: offline, FreeText: []string{"description"}, KeepHead: true, Host: true,
	Description: "Give a piece of work to another agent and wait for its answer. The agent sees only the prompt, nothing of this conversation: " +
		"say what to do, what is known already, and what to report. With resume it also sees what it said and did in an earlier call. " +
		"Calls of one message run at the same time.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"agent":{"type":"string","description":"Name of the agent"},` +
		`"prompt":{"type":"string","minLength":1,"maxLength":1048576,"description":"The work, complete in itself"},` +
		`"description":{"type":"string","description":"The work in a few words, for people"},` +
		`"resume":{"type":"string","maxLength":256,"description":"Continue an earlier call for the same agent: its run, as its result names it (run/...), or last"}},` +
		`"required":["agent","prompt"],"additionalProperties":false}`),
}

// taskApply merges what a subagent has changed in a copy. Its arguments name each file, so
// that policies judge it like a call of patch. It may be repeated after a crash: what has
// been merged is not merged again.
var taskApply = Tool{
	Name: "task_apply", Risk: v1alpha1.RiskR1, Effects: []v1alpha1.Effect{v1alpha1.EffectWrite},
	Category: v1alpha1.CategoryEdit, Concurrency: v1alpha1.ConcurrencyExclusive, Retry: v1alpha1.RetryKeyed,
	Access: v1alpha1.AccessReadWrite, Network: offline, KeepHead: true, Host: true,
	Description: "Take over what an agent has changed in its copy of the files: all of it or nothing. Until then its changes are not in these files. " +
		"It fails, and changes nothing, when a file has changed here since the agent began. To take only some files, name them.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"run":{"type":"string","minLength":1,"maxLength":256,"description":"The run of the agent, as the result of task names it (run/...); the name of the agent for its newest run; or last"},` +
		`"files":{"type":"array","maxItems":1000,"items":{"type":"string","minLength":1},"description":"Added or modified files to take; default: with deleted, everything"},` +
		`"deleted":{"type":"array","maxItems":1000,"items":{"type":"string","minLength":1},"description":"Files to delete as the agent has"}},` +
		`"required":["run"],"additionalProperties":false}`),
}

// delegating is the contract of a Tool whose calls start one agent.
var delegating = Tool{
	Risk: task.Risk, Category: task.Category, Concurrency: task.Concurrency, Retry: task.Retry, Access: task.Access,
	Parameters: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string","minLength":1,"maxLength":1048576,"description":"The work, complete in itself"}},` +
		`"required":["prompt"],"additionalProperties":false}`),
}
