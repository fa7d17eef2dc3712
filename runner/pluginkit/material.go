package pluginkit

import (
	"context"
	"encoding/json"
	"errors"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp"
)

// MCPMaterial is what a server has for people: its prompts, its resources, or one of them.
type MCPMaterial struct {
	Prompts   []mcp.Prompt   `json:"prompts,omitempty"`
	Resources []mcp.Resource `json:"resources,omitempty"`
	// Text of the prompt that was asked for.
	Text string `json:"text,omitempty"`
	// Contents of the resource that was asked for.
	Contents []mcp.Content `json:"contents,omitempty"`
}

// MCPWish is what is asked for: a prompt with its arguments, a resource or, without a name,
// the list of all.
type MCPWish struct {
	// Prompt and Resource are names; nil asks for none, "" for the list.
	Prompt, Resource *string
	Arguments        map[string]string
}

// Fetch returns what asks the server of a Tool, for connect.UseTool. The material has none of
// the secrets of the Tool.
func (w MCPWish) Fetch(into *MCPMaterial) func(ctx context.Context, p *tool.Pool, d *tool.Definition, hide func([]byte) []byte) error {
	return func(ctx context.Context, p *tool.Pool, d *tool.Definition, hide func([]byte) []byte) error {
		found, err := w.fetch(ctx, p, d)
		if err != nil {
			return err
		}
		text, err := json.Marshal(found)
		if err == nil {
			err = json.Unmarshal(hide(text), into)
		}
		if err != nil {
			return reason.New(reason.Internal, "remove the secrets from what the server sent: %w", err)
		}
		return nil
	}
}

func (w MCPWish) fetch(ctx context.Context, p *tool.Pool, d *tool.Definition) (m MCPMaterial, err error) {
	switch {
	case w.Prompt != nil && *w.Prompt != "":
		m.Text, err = mcp.GetPrompt(ctx, p, d, *w.Prompt, w.Arguments)
	case w.Prompt != nil:
		m.Prompts, err = mcp.Prompts(ctx, p, d)
	case w.Resource != nil && *w.Resource != "":
		m.Contents, err = mcp.ReadResource(ctx, p, d, *w.Resource)
	case w.Resource != nil:
		m.Resources, err = mcp.Resources(ctx, p, d)
	default:
		err = errors.New("nothing is asked for")
	}
	return m, err
}
