package builtin

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Publish is the name of the tool that prepares items for publication.
const Publish = "publish"

// publish prepares an item. A call sends nothing, and is judged as if it did: what it
// prepares leaves the host later. It may be repeated: only its recorded result counts.
// Exclusive: of two items in one step, the second may be one too many.
var publish = Tool{
	Name: Publish, Risk: v1alpha1.RiskR2, Effects: []v1alpha1.Effect{v1alpha1.EffectMessage},
	Category: v1alpha1.CategoryOther, Concurrency: v1alpha1.ConcurrencyExclusive, Retry: v1alpha1.RetryIdempotent,
	Access: v1alpha1.AccessNone, Network: offline, KeepHead: true, Host: true,
	Description: "Prepare something for publication after this run: it is checked and shown to people before it is sent, and cannot be changed afterwards.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","minLength":1,"maxLength":63,"description":"Which of the declared publications it is"},` +
		`"title":{"type":"string","minLength":1,"maxLength":200,"description":"Title of a pull request"},` +
		`"body":{"type":"string","minLength":1,"maxLength":60000,"description":"The text, in Markdown"},` +
		`"data":{"type":"object","description":"Data for a webhook"}},` +
		`"required":["name"],"additionalProperties":false}`),
}
