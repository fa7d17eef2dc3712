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

// delegating is the contract of a Tool whose calls start one agent.
var delegating = Tool{
	Risk: task.Risk, Category: task.Category, Concurrency: task.Concurrency, Retry: task.Retry, Access: task.Access,
	Parameters: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string","minLength":1,"maxLength":1048576,"description":"The work, complete in itself"}},` +
		`"required":["prompt"],"additionalProperties":false}`),
}
