package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tools are what the server offers.
const tools = `[
{"name":"list_files","description":"Names the files of a folder.","annotations":{"readOnlyHint":true},
 "inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"folder"}},"required":["path"],"additionalProperties":false}},
{"name":"read_file","description":"Returns the text of a file.","annotations":{"readOnlyHint":true},
 "inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}},
{"name":"write_file","description":"Writes a file.",
 "inputSchema":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}},
{"name":"delete_file","description":"Deletes a file.","annotations":{"destructiveHint":true},
 "inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}}]`

const start = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}`

// serve answers one request a line.
func serve(from io.Reader, to io.Writer) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string                         `json:"name"`
				Arguments struct{ Path, Content string } `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || req.ID == nil {
			continue // a notification
		}
		switch req.Method {
		case "initialize":
			reply(to, req.ID, "result", json.RawMessage(start))
		case "ping":
			reply(to, req.ID, "result", json.RawMessage(`{}`))
		case "tools/list":
			reply(to, req.ID, "result", json.RawMessage(`{"tools":`+tools+`}`))
		case "tools/call":
			text, err := call(req.Params.Name, req.Params.Arguments.Path, req.Params.Arguments.Content)
			if err != nil {
				text = err.Error()
			}
			reply(to, req.ID, "result", map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": err != nil})
		default:
			reply(to, req.ID, "error", map[string]any{"code": -32601, "message": "method not found"})
		}
	}
}

func reply(to io.Writer, id json.RawMessage, field string, value any) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, field: value})
	if err != nil {
		return
	}
	fmt.Fprintln(to, string(b))
}

// call does what one of the tools says.
func call(tool, path, content string) (string, error) {
	switch tool {
	case "list_files":
		entries, err := os.ReadDir(path)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, "\n"), err
	case "read_file":
		b, err := os.ReadFile(path)
		return string(b), err
	case "write_file":
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		return "written: " + path, os.WriteFile(path, []byte(content), 0o644)
	case "delete_file":
		return "deleted: " + path, os.Remove(path)
	}
	return "", fmt.Errorf("there is no tool %s", tool)
}
