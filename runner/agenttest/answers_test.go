package agenttest

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/approval"
)

var _ approval.Person = (*answers)(nil)

func TestTheFirstEntryThatSelectsAnswers(t *testing.T) {
	const yes, no = v1alpha1.TestApprove, v1alpha1.TestReject
	question := func(tool, rule, risk, args string) message.Question {
		return message.Question{Call: message.ToolCall{Tool: tool, Args: json.RawMessage(args)}, Decision: message.Decision{Rule: rule, Risk: risk, Message: "why"}}
	}
	push := question("bash", "p/push", "R2", `{"command":"git push"}`)
	for name, c := range map[string]struct {
		reason  string
		entries []v1alpha1.TestApproval
		q       message.Question
		want    message.ApprovalState
		text    string
	}{
		"none":         {"nobody answers", nil, push, "", ""},
		"any":          {"an entry without a condition selects all", []v1alpha1.TestApproval{{Answer: yes}}, push, message.Approved, ""},
		"tool":         {"another tool is not selected", []v1alpha1.TestApproval{{Tool: "edit", Answer: yes}}, push, "", ""},
		"rule":         {"nor another rule", []v1alpha1.TestApproval{{Rule: "p/other", Answer: yes}}, push, "", ""},
		"when":         {"nor what a condition leaves out", []v1alpha1.TestApproval{{When: "args.command == 'ls'", Answer: yes}, {When: "args.command == 'git push' && agent == 'a'", Answer: no, Reason: "not now"}}, push, message.Rejected, "not now"},
		"order":        {"the first counts", []v1alpha1.TestApproval{{Answer: no}, {Tool: "bash", Answer: yes}}, push, message.Rejected, ""},
		"irreversible": {"what cannot be undone is not approved by the way", []v1alpha1.TestApproval{{Answer: yes}, {Rule: "p/drop", Answer: yes}}, question("drop", "p/drop", "R3", "{}"), "", ""},
		"by name":      {"but by its name", []v1alpha1.TestApproval{{Answer: yes}, {Tool: "drop", Answer: yes}}, question("drop", "p/drop", "R3", "{}"), message.Approved, ""},
		"rejected":     {"and anything rejects it", []v1alpha1.TestApproval{{Answer: no}}, question("drop", "p/drop", "R3", "{}"), message.Rejected, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{entries: c.entries, at: "spec.approvals"}
			got, ok, err := a.Approve(t.Context(), "a", c.q)
			if err != nil || ok != (c.want != "") || got.State != c.want || got.Reason != c.text {
				t.Errorf("%s: %+v, %t, %v", c.reason, got, ok, err)
			}
			if ok && got.By != by {
				t.Errorf("answered by %q", got.By)
			}
		})
	}
}

func TestQuestionsOfCallsAreAnswered(t *testing.T) {
	call := message.ToolCall{Tool: "question", Args: json.RawMessage("{}")}
	in := message.Inquiry{ID: "q1", Text: "Which colour?", Options: []string{"red", "blue"}}
	for name, c := range map[string]struct {
		reason string
		entry  v1alpha1.TestApproval
		want   message.ReplyState
		answer string
		wrong  string
	}{
		"text":      {"one of the options", v1alpha1.TestApproval{Answer: v1alpha1.TestApprove, Text: "blue"}, message.ReplyAnswered, "blue", ""},
		"number":    {"or its number", v1alpha1.TestApproval{Tool: "question", Answer: v1alpha1.TestApprove, Text: "1"}, message.ReplyAnswered, "red", ""},
		"condition": {"the text of the question selects", v1alpha1.TestApproval{When: "message.contains('size')", Answer: v1alpha1.TestApprove, Text: "blue"}, "", "", ""},
		"rule":      {"no rule asks it", v1alpha1.TestApproval{Rule: "p/r", Answer: v1alpha1.TestApprove, Text: "blue"}, "", "", ""},
		"no text":   {"an approval is not an answer", v1alpha1.TestApproval{Answer: v1alpha1.TestApprove}, "", "", ""},
		"refused":   {"it may be refused", v1alpha1.TestApproval{Answer: v1alpha1.TestReject, Reason: "no"}, message.ReplyRefused, "", ""},
		"unfit":     {"another text is a mistake of the test", v1alpha1.TestApproval{Answer: v1alpha1.TestApprove, Text: "green"}, "", "", "one of the options"},
		"broken":    {"so is a condition that cannot be evaluated", v1alpha1.TestApproval{When: "args.nothing == 1", Answer: v1alpha1.TestReject}, "", "", "spec.approvals[0].when cannot be evaluated"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{entries: []v1alpha1.TestApproval{c.entry}, at: "spec.approvals"}
			got, ok, err := a.Reply(t.Context(), "a", call, in)
			if ok != (c.want != "") || got.State != c.want || got.Answer != c.answer || (err == nil) != (c.wrong == "") {
				t.Errorf("%s: %+v, %t, %v", c.reason, got, ok, err)
			}
			if problem := a.problem(); (problem == nil) != (c.wrong == "") || problem != nil && !strings.Contains(problem.Error(), c.wrong) {
				t.Errorf("%s: the test has the problem %v", c.reason, problem)
			}
		})
	}
}
