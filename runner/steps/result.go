package steps

import (
	"encoding/json"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expr"
)

// resultOf is the result of a call as expressions read it. A call that was not made has
// the empty result.
func resultOf(call *message.ToolPart) map[string]any {
	v := map[string]any{"ran": false, "output": "", "error": "", "exitCode": int64(0), "data": nil}
	if call == nil || call.Result == nil {
		return v
	}
	r := call.Result
	output := r.Output
	if output == "" && r.Failed() {
		output = r.Text // why it did not run
	}
	output = strings.ToValidUTF8(output, "\uFFFD")
	v["ran"], v["output"], v["error"], v["data"] = call.Start != 0, output, errorOf(r), dataOf(output)
	if r.ExitCode != nil {
		v["exitCode"] = int64(*r.ExitCode)
	}
	return v
}

// exited is the error of a program that ended with another exit code than 0: a model looks
// at the code itself, and a plan must not go on as if nothing had happened.
const exited = "exit"

// errorOf is why a call failed, "" for one that did not.
func errorOf(r *message.ToolResult) string {
	if !r.Failed() && r.ExitCode != nil && *r.ExitCode != 0 {
		return exited
	}
	return string(r.Code)
}

// dataOf is the value of an output that is a JSON object or list; nil for any other.
func dataOf(output string) any {
	text := strings.TrimSpace(output)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return nil
	}
	v, err := expr.Dyn.Decode(json.RawMessage(text))
	if err != nil {
		return nil // it only looked like JSON
	}
	return v
}

// resultsOf are the results of a step with a forEach.
func resultsOf(items []any, calls []*message.ToolPart) map[string]any {
	all, failed, ran := make([]any, len(calls)), "", false
	for i, call := range calls {
		one := resultOf(call)
		one["item"] = items[i]
		all[i] = one
		if code, _ := one["error"].(string); failed == "" {
			failed = code
		}
		ran = ran || one["ran"] == true
	}
	return map[string]any{"ran": ran, "error": failed, "items": all}
}
