package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// resultText bounds what a rule reads of a result.
const resultText = 64 << 10

// Review decides about a result before the model sees it. Deny withholds it, and so does
// ask: a result cannot be asked about. Redact returns a changed copy.
func (e *Engine) Review(ctx context.Context, call message.ToolCall, result *message.ToolResult) (*message.ToolResult, error) {
	out, err := e.reviewOwn(ctx, call, result)
	for _, c := range e.ceilings {
		if err != nil {
			return nil, err
		}
		out, err = c.Review(ctx, call, out)
	}
	return out, err
}

func (e *Engine) reviewOwn(ctx context.Context, call message.ToolCall, result *message.ToolResult) (out *message.ToolResult, err error) {
	j, ok := e.tools[call.Tool]
	if !ok || result == nil {
		return nil, fmt.Errorf("review the result of %s: there is no such tool or result", call.Tool)
	}
	if len(j.enforced.after) == 0 && e.context.Traced == nil {
		return result, nil
	}
	// What a call has brought is judged also when the run is being stopped, or the
	// output so far would be withheld. Each rule has a deadline of its own.
	ctx = context.WithoutCancel(ctx)
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("review the result of %s: %v", call.Tool, r)
		}
	}()
	in, err := e.input(j, call)
	if err != nil {
		return nil, fmt.Errorf("review the result of %s: %w", call.Tool, err)
	}
	in.result(result)
	e.traced(ctx, j, in, true)
	return e.review(ctx, j, in, result)
}

// WithheldError is the error for a result that a rule withholds from the model.
type WithheldError struct {
	// Rule as policy/rule.
	Rule    string
	Message string
	// Err is why the rule could not be judged; nil when it could.
	Err error
}

func (e *WithheldError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("rule %s could not be judged, so the result is withheld: %v", e.Rule, e.Err)
	}
	return fmt.Sprintf("the result is withheld by %s: %s", e.Rule, e.Message)
}

// Unwrap returns why the rule could not be judged.
func (e *WithheldError) Unwrap() error { return e.Err }

func (e *Engine) review(ctx context.Context, j *judged, in *input, result *message.ToolResult) (*message.ToolResult, error) {
	for _, action := range []v1alpha1.Action{v1alpha1.ActionDeny, v1alpha1.ActionAsk} {
		for _, r := range j.enforced.after[action] {
			t, err := r.truth(ctx, in)
			if err != nil {
				return nil, &WithheldError{Rule: r.id, Err: err}
			}
			if t != expr.False {
				return nil, &WithheldError{Rule: r.id, Message: r.explain(ctx, in, j, "withholds the result of")}
			}
		}
	}
	changed := *result
	touched := false
	for _, r := range j.enforced.after[v1alpha1.ActionRedact] {
		t, err := r.truth(ctx, in)
		if err != nil {
			return nil, &WithheldError{Rule: r.id, Err: err}
		}
		if t != expr.False {
			touched = true
			r.rewrite(&changed)
		}
	}
	if !touched {
		return result, nil
	}
	return &changed, nil
}

// rewrite redacts everything of a result that anybody can read.
func (r *rule) rewrite(t *message.ToolResult) {
	text, output := r.redactText(t.Text), r.redactText(t.Output)
	if t.Blob != "" {
		// The blob holds the unredacted text: its name must not reach a reader of the
		// result.
		text = strings.ReplaceAll(text, fmt.Sprintf("read the rest with path %q", "blob:"+t.Blob), "a rule withholds the rest")
		text, output = strings.ReplaceAll(text, t.Blob, redacted), strings.ReplaceAll(output, t.Blob, redacted)
		t.Blob = ""
	}
	if len(t.Attachments) > 0 && (text != t.Text || output != t.Output) {
		text += fmt.Sprintf("\n[%d attached files are withheld: a rule takes something out of the result, and nothing can be taken out of a file]", len(t.Attachments))
		t.Attachments = nil
	}
	t.Text, t.Output, t.Title = text, output, r.redactText(t.Title)
	if len(t.Metadata) > 0 {
		t.Metadata = json.RawMessage(r.redactMetadata(t.Metadata))
	}
	t.Diagnostics = r.redactChecks(t.Diagnostics)
	t.Record = r.redactRecord(t.Record)
	t.Parts = slices.Clone(t.Parts)
	for i := range t.Parts {
		t.Parts[i].Data = json.RawMessage(r.redactMetadata(t.Parts[i].Data))
	}
}

func (r *rule) redactMetadata(raw json.RawMessage) []byte {
	out, err := redactArgs(raw, []*rule{r})
	if err != nil {
		return []byte("null")
	}
	return out
}

// redactRecord returns a copy. What cannot be redacted is left out, and counted.
func (r *rule) redactRecord(record *message.Record) *message.Record {
	if record == nil {
		return nil
	}
	var clean message.Record
	raw, err := json.Marshal(record)
	if err != nil || json.Unmarshal(r.redactMetadata(raw), &clean) != nil {
		return &message.Record{Omitted: record.Size()}
	}
	return &clean
}

// redactChecks returns copies: the results of others share the slices.
func (r *rule) redactChecks(checks []message.Check) []message.Check {
	checks = slices.Clone(checks)
	for i := range checks {
		c := &checks[i]
		c.Message, c.Findings = r.redactText(c.Message), slices.Clone(c.Findings)
		for j := range c.Findings {
			c.Findings[j].Message = r.redactText(c.Findings[j].Message)
		}
	}
	return checks
}

// result lets rules read a result.
func (in *input) result(r *message.ToolResult) {
	in.vars["result"] = resultValue(r)
	in.large = in.large || len(r.Text) > largeArgs
}

func resultValue(r *message.ToolResult) map[string]any {
	text := r.Output
	if text == "" {
		text = r.Text
	}
	size := len(text)
	if len(text) > resultText {
		text = text[:resultText]
	}
	code := 0
	if r.ExitCode != nil {
		code = *r.ExitCode
	}
	return map[string]any{"size": size, "text": text, "error": string(r.Code), "exitCode": code}
}
