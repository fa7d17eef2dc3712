package endpoint

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/coder"
)

// dearer are members of requests by which an answer has another price, is several, comes from
// another model, comes later where nobody counts it, or makes the server reach others.
var dearer = []string{
	"service_tier", "speed", "inference_geo", "n", "best_of", "models", "fallbacks", "background",
	"mcp_servers", "web_search_options", "plugins",
}

// rewrite puts the name of the model into a request, asks for a count of the tokens, and
// returns how many an answer may have.
func (e *Endpoint) rewrite(body []byte) (_ []byte, output int64, err error) {
	var req map[string]json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil || req == nil {
		return nil, 0, errors.New("the request is not a JSON object")
	}
	name, err := json.Marshal(e.o.Model)
	if err != nil {
		return nil, 0, err
	}
	req["model"] = name
	for _, member := range dearer {
		delete(req, member)
	}
	if tools, ok := req["tools"]; ok {
		own, err := e.own(tools)
		if err != nil {
			return nil, 0, err
		}
		if req["tools"] = own; own == nil {
			delete(req, "tools")
			delete(req, "tool_choice")
		}
	}
	if e.o.API == coder.Chat && string(req["stream"]) == "true" {
		req["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	for _, member := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		var n int64
		if json.Unmarshal(req[member], &n) == nil && n > 0 {
			output = max(output, n)
		}
	}
	if output == 0 {
		output = e.o.Output
	}
	body, err = json.Marshal(req)
	return body, output, err
}

// own are the tools that the program carries out itself, in its sandbox. Those of the server,
// such as a search of the web or an MCP server, would be another network, and another price:
// they are left out. It is nil where none is left.
func (e *Endpoint) own(tools json.RawMessage) (json.RawMessage, error) {
	var all, kept []map[string]json.RawMessage
	if json.Unmarshal(tools, &all) != nil {
		return nil, errors.New("tools of the request are not a list of objects")
	}
	for _, t := range all {
		var kind string
		if raw, ok := t["type"]; ok && json.Unmarshal(raw, &kind) != nil || t == nil {
			return nil, errors.New("a tool of the request has no type")
		}
		if e.o.API == coder.Messages {
			kind, _, _ = strings.Cut(kind, "_2") // bash_20250124
		}
		if slices.Contains(ours[e.o.API], kind) {
			kept = append(kept, t)
		}
	}
	if kept == nil {
		return nil, nil
	}
	return json.Marshal(kept)
}

// ours are the types of tools that programs carry out.
var ours = map[coder.API][]string{
	coder.Chat:      {"function", "custom"},
	coder.Responses: {"function", "custom", "local_shell", "apply_patch"},
	coder.Messages:  {"", "custom", "bash", "text_editor", "memory"},
}
