package runner

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// TestRulesReadWhoBeganARunWhatItCostsAndWhatWasApproved: each of these facts has its
// value in a run, and in the explanation of its decisions.
func TestRulesReadWhoBeganARunWhatItCostsAndWhatWasApproved(t *testing.T) {
	const more = `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: list, annotations: {example.com/owner: web}}
spec: {source: {builtin: {name: list}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
  rules:
  - {name: ask, match: {tools: [list]}, when: call.args.depth < 3, action: ask}
  - name: deny
    match: {tools: [list]}
    when: call.args.depth == 3
    action: deny
    messageExpression: >-
      run.user + ' ' + tool.annotations['example.com/owner'] + ' ' + string(session.approvals.granted) + ' ' + string(session.approvals.refused)
      + ' ' + string(budget.cost.used) + ' of ' + string(budget.cost.limit)
`
	steps := "- calls: [{tool: list, args: {depth: 1}}]\n- calls: [{tool: list, args: {depth: 2}}]\n- calls: [{tool: list, args: {depth: 3}}]\n- say: done\n"
	p := newPlace(t, agent("tools: [{name: list}]\npolicyRefs: [{name: p}]\nlimits: {maxCost: \"0.50\"}", steps, more), nil)
	out := p.run(t, func(o *RunOptions) { o.User, o.Approve = "alice", "all" })
	want(t, out, reason.Completed)
	calls := out.Result().ToolCalls
	if len(calls) != 3 || out.Run.Granted != 2 || out.Run.Refused != 0 {
		t.Fatalf("%d calls, %d granted, %d refused", len(calls), out.Run.Granted, out.Run.Refused)
	}
	d := decisionOf(t, out, 2)
	if d != "alice web 2 0 0 of 0.5" {
		t.Errorf("the rule read %q", d)
	}

	refused := newPlace(t, agent("tools: [{name: list}]\npolicyRefs: [{name: p}]", steps, more), nil)
	out = refused.run(t, func(o *RunOptions) { o.User, o.Approve = "alice", "never" })
	if d := decisionOf(t, out, 2); !strings.HasPrefix(d, "alice web 0 0 ") {
		t.Errorf("where nobody answers, nothing is granted or refused: the rule read %q", d)
	}
	if o := (&RunOptions{}); o.user() == "" {
		t.Error("a run of the command line has no user")
	}
	if o := (&RunOptions{Documents: []Document{{}}}); o.user() != "" {
		t.Errorf("a run of objects is said to be begun by the account of the control plane, %s", o.user())
	}
}

// decisionOf is the message of what was decided about a call of a run.
func decisionOf(t *testing.T, out *Outcome, at int) string {
	t.Helper()
	n := 0
	for _, m := range out.Run.Messages {
		for _, c := range m.Calls() {
			if n == at && c.Decision != nil {
				return c.Decision.Message
			}
			n++
		}
	}
	t.Fatalf("the run has no decision about call %d", at)
	return ""
}
