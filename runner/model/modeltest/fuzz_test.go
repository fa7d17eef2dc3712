package modeltest_test

import (
	"testing"

	"agentctl.dev/agentctl/runner/model/modeltest"
)

// FuzzCheck shows any body to every server: what one wire takes, no other does.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		goodRequest, `{"model":"m","stream":true,"store":false,"input":"hi"}`,
		`{"model":"m","stream":true,"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"a","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"ok"}]}`,
		`{"model":"m","stream":true,"max_tokens":5,"tools":[{"name":"x","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"a"}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{}}}]}]}`,
		`{"messages":[null]}`, `{"contents":[{"parts":[{}]}]}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var takes []string
		for _, w := range modeltest.Wires() {
			if w.Check(body) == nil {
				takes = append(takes, w.Name())
			}
		}
		// Chat and messages are alike where both have texts only.
		if len(takes) > 1 && (len(takes) != 2 || takes[0] != "chat" || takes[1] != "anthropic") {
			t.Errorf("%s is a request of %q", body, takes)
		}
	})
}
