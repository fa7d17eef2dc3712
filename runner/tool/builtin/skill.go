package builtin

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Skill is the name of the tool that loads skills.
const Skill = "skill"

// load loads the text of a skill. It may be repeated: nothing is changed.
var load = Tool{
	Name: Skill, Risk: v1alpha1.RiskR0, Effects: []v1alpha1.Effect{v1alpha1.EffectRead},
	Category: v1alpha1.CategoryRead, Concurrency: v1alpha1.ConcurrencyShared, Retry: v1alpha1.RetryIdempotent,
	Access: v1alpha1.AccessNone, Network: offline, KeepHead: true, Host: true,
	Description: "Load a skill: instructions for a particular kind of work, with the names of its files. With file: one of those files. Without name: all skills with their descriptions.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","maxLength":64,"description":"Name of the skill"},` +
		`"file":{"type":"string","minLength":1,"maxLength":1024,"description":"Path of one of its files, as the skill lists it"}},` +
		`"additionalProperties":false}`),
}
