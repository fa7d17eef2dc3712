package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
)

// mcpServer is the MCP server of the stories (cmd/agentctl/mcpserver_test.go), without the
// library: only two packages of the module use that.
func mcpServer() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var req mcpRequest
		if json.Unmarshal(in.Bytes(), &req) != nil || len(req.ID) == 0 { // a notification has no answer
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		if result := req.answer(); result != nil {
			answer["result"] = result
		} else {
			answer["error"] = map[string]any{"code": -32601, "message": "not found"}
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

// mcpRequest is a request to the server.
type mcpRequest struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Name            string
		Arguments       struct{ Path string }
	}
}

// answer is the result of a request; nil if there is no such method or function.
func (r *mcpRequest) answer() any {
	switch r.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": r.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "story", "version": "1"},
		}
	case "ping":
		return map[string]any{}
	case "tools/list":
		return map[string]any{"tools": mcpFunctions()}
	case "tools/call":
		return r.call()
	}
	return nil
}

func mcpFunctions() []map[string]any {
	function := func(name, description, schema string, hints map[string]any) map[string]any {
		return map[string]any{"name": name, "description": description, "inputSchema": json.RawMessage(schema), "annotations": hints}
	}
	const schema = `{"type":"object","properties":{"path":{"type":"string","description":"which file"}},"required":["path"]}`
	all := []map[string]any{
		function("read.file", "Reads a file.", schema, map[string]any{"readOnlyHint": true}),
		function("remove", "Removes a file.", schema, map[string]any{"destructiveHint": true}),
		function("whoami", "Shows a variable.", schema, nil),
	}
	if len(os.Args) > 1 && os.Args[1] == "odd" {
		all = append(all, function("odd", "Cannot be used.", `{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`, nil))
	}
	return all
}

func (r *mcpRequest) call() any {
	path, text, err := r.Params.Arguments.Path, "", error(nil)
	switch r.Params.Name {
	case "read.file":
		var b []byte
		b, err = os.ReadFile(path)
		text = strings.TrimSpace(string(b))
	case "remove":
		text, err = "removed "+path, os.Remove(path)
	case "whoami":
		text = path + "=" + os.Getenv(path)
	default:
		return nil
	}
	if err != nil {
		text = err.Error()
	}
	return map[string]any{"content": []map[string]any{{"type": "text", "text": text}}, "isError": err != nil}
}
