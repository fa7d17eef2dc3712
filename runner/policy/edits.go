package policy

import (
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// checkEdits warns about a rule that is to refuse what edit puts into files, and reads
// only one of the two ways to say it: a call has either oldString and newString, or edits.
// has(call.args.newString) in front of the condition keeps it from failing, and lets every
// call with edits pass.
func (c *compiler) checkEdits(path string, r *v1alpha1.Rule, tools []*Tool, when *matrix) {
	if r.On == v1alpha1.OnResult || r.Action != v1alpha1.ActionDeny && r.Action != v1alpha1.ActionAsk {
		return
	}
	edits := slices.ContainsFunc(tools, func(t *Tool) bool { return t.Builtin == "edit" })
	if !edits || when.source == nil || when.source.Reads("call", "args", "edits") {
		return
	}
	for _, field := range []string{"newString", "oldString"} {
		if !when.source.Reads("call", "args", field) {
			continue
		}
		c.report(Problem{
			Path: path, Message: "a call of edit may have edits instead of " + field + ": the rule does not look at them", Warning: true,
			Suggestion: "write has(call.args." + field + ") && ... || has(call.args.edits) && call.args.edits.exists(e, ...), with e." + field + " in the second part",
		})
		return
	}
}
