package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/caller"
)

// ToolsOf returns the tools that a run offers to clients. With confirm, the person behind
// a client may answer when a rule asks for an approval.
func ToolsOf(c *caller.Caller, offer caller.Offer, confirm bool) []Tool {
	tools := make([]Tool, 0, len(offer.Tools))
	for _, spec := range offer.Tools {
		tools = append(tools, Tool{
			Name: spec.Name, Description: spec.Description, Input: spec.Parameters, Confirms: confirm,
			Call: func(ctx context.Context, call Call) (*Result, error) {
				return forward(ctx, c, &offer, spec.Name, call)
			},
		})
	}
	return tools
}

// forward has a run make a call.
func forward(ctx context.Context, c *caller.Caller, offer *caller.Offer, tool string, call Call) (*Result, error) {
	run := offer.Run
	args := string(call.Args)
	if len(call.Args) == 0 {
		args = "{}"
	}
	r := caller.Request{Client: call.Client, Tool: tool, Args: args, Notify: func(n caller.Note) {
		if n.Asked != nil && n.Asked.ExpiresAt == 0 {
			return // nobody is waited for
		}
		if n.Asked != nil {
			call.Progress(fmt.Sprintf("waits for an approval (rule %s): agentctl approve %s/%s", n.Asked.Rule, run, n.Call))
			return
		}
		for _, line := range lines(n.Output) {
			call.Progress(line)
		}
	}}
	if confirm := call.Confirm; confirm != nil {
		r.Ask = func(ctx context.Context, q message.Question) (message.Answer, error) {
			said, err := confirm(ctx, string(approval.Describe(q)))
			if err != nil {
				return message.Answer{}, err
			}
			answer := message.Answer{State: message.Rejected, By: "client " + caller.Shown(call.Client), Reason: said.Reason}
			if said.Approved {
				answer.State = message.Approved
			}
			return answer, nil
		}
	}
	response, err := c.Call(ctx, r)
	if err != nil {
		return nil, err
	}
	result := &Result{Text: []string{response.Result.Text}, Failed: response.Result.Failed(), Meta: map[string]string{"run": run, "call": response.Call}}
	for _, f := range response.Result.Attachments {
		id, stored := strings.CutPrefix(f.URL, "blob:")
		if !stored { // a resource that only its own server can read
			result.Text = append(result.Text, fmt.Sprintf("[%s: %s]", f.Filename, f.URL))
			continue
		}
		content, err := offer.Blob(id)
		if err != nil {
			result.Text = append(result.Text, fmt.Sprintf("[the file %s cannot be read: %v]", f.Filename, err))
			continue
		}
		result.Files = append(result.Files, File{Name: f.Filename, Mime: f.Mime, Content: content})
	}
	if code := response.Result.Code; code != "" {
		result.Meta["code"] = string(code)
		if !strings.HasPrefix(response.Result.Text, string(code)) {
			result.Text[0] = string(code) + ": " + response.Result.Text
		}
	}
	return result, nil
}

// mostLines bounds the notifications for what a tool reports at once.
const mostLines = 32

// lines are those of a text, the last with all that follows where there are more.
func lines(text string) []string {
	return strings.SplitN(strings.TrimRight(text, "\n"), "\n", mostLines)
}

// emptySchema accepts any object.
var emptySchema = json.RawMessage(`{"type":"object"}`)
