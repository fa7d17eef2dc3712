package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a server with a few functions, as a story declares one.
func mcpServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "story", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"which file"}},"required":["path"]}`)
	text := func(req *mcp.CallToolRequest, of func(path string) (string, error)) (*mcp.CallToolResult, error) {
		var in struct{ Path string }
		_ = json.Unmarshal(req.Params.Arguments, &in)
		said, err := of(in.Path)
		if err != nil {
			said = err.Error()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}, IsError: err != nil}, nil
	}
	s.AddTool(&mcp.Tool{Name: "read.file", Description: "Reads a file.", InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(req, func(path string) (string, error) {
				b, err := os.ReadFile(path) //nolint:gosec // its sandbox decides
				return strings.TrimSpace(string(b)), err
			})
		})
	yes := true
	s.AddTool(&mcp.Tool{Name: "remove", Description: "Removes a file.", InputSchema: schema, Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(req, func(path string) (string, error) { return "removed " + path, os.Remove(path) })
		})
	s.AddTool(&mcp.Tool{Name: "whoami", Description: "Shows a variable.", InputSchema: schema},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text(req, func(name string) (string, error) { return name + "=" + os.Getenv(name), nil })
		})
	if len(os.Args) > 1 && os.Args[1] == "odd" {
		s.AddTool(&mcp.Tool{Name: "odd", Description: "Cannot be used.", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return text(req, func(string) (string, error) { return "called", nil })
			})
	}
	addMaterial(s)
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// addMaterial adds a prompt and resources.
func addMaterial(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews a file.", Arguments: []*mcp.PromptArgument{{Name: "path", Required: true}, {Name: "tone"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			say := func(role mcp.Role, text string) *mcp.PromptMessage {
				return &mcp.PromptMessage{Role: role, Content: &mcp.TextContent{Text: text}}
			}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				say("user", "Review "+req.Params.Arguments["path"]+" as "+os.Getenv("WHO")+"."), say("assistant", "Gladly."),
			}}, nil
		})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: "what " + os.Getenv("WHO") + " noted\x1b[2J\n"}
		if req.Params.URI == "note://picture" {
			c.MIMEType, c.Text, c.Blob = "image/gif", "", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "note://1", Name: "note", MIMEType: "text/plain"}, read)
	s.AddResource(&mcp.Resource{URI: "note://picture", Name: "picture", MIMEType: "image/gif"}, read)
}
