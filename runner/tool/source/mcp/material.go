package mcp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool"
)

// Prompt is a text that a server has for people, who may fill in its arguments.
type Prompt struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Resource is something that can be read from a server.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
	Size        *int64 `json:"size,omitempty"`
}

// Content is what was read: a text or, for all others, bytes.
type Content struct {
	URI  string `json:"uri"`
	Type string `json:"type,omitempty"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// maxMaterial bounds the prompts or resources that a server lists.
const maxMaterial = 2000

// Prompts lists the prompts of the server of a Tool.
func Prompts(ctx context.Context, p *tool.Pool, d *tool.Definition) (all []Prompt, err error) {
	err = speak(ctx, p, d, func(ctx context.Context, l *link) error {
		return listed(l.session.Prompts(ctx, nil), func(p *mcp.Prompt) {
			one := Prompt{Name: p.Name, Description: p.Description}
			for _, a := range p.Arguments {
				one.Arguments = append(one.Arguments, PromptArgument{a.Name, a.Description, a.Required})
			}
			all = append(all, one)
		})
	})
	return all, wrapped(d, "list its prompts", err)
}

// GetPrompt returns the text of a prompt with these arguments. Parts of other roles than
// the user's begin with a line that names the role; those that are no text are a line.
func GetPrompt(ctx context.Context, p *tool.Pool, d *tool.Definition, name string, args map[string]string) (text string, err error) {
	err = speak(ctx, p, d, func(ctx context.Context, l *link) error {
		got, err := l.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return err
		}
		var parts []string
		for _, m := range got.Messages {
			said := part(l.name, m.Content, &tool.Reply{})
			if m.Role != "user" {
				said = "[" + clean(string(m.Role)) + "]\n" + said
			}
			parts = append(parts, said)
		}
		text = strings.Join(parts, "\n\n")
		return nil
	})
	return text, wrapped(d, fmt.Sprintf("get its prompt %q", name), err)
}

// Resources lists the resources of the server of a Tool.
func Resources(ctx context.Context, p *tool.Pool, d *tool.Definition) (all []Resource, err error) {
	err = speak(ctx, p, d, func(ctx context.Context, l *link) error {
		return listed(l.session.Resources(ctx, nil), func(r *mcp.Resource) {
			one := Resource{URI: r.URI, Name: r.Name, Description: r.Description, Type: r.MIMEType}
			if r.Size > 0 {
				one.Size = &r.Size
			}
			all = append(all, one)
		})
	})
	return all, wrapped(d, "list its resources", err)
}

// ReadResource reads a resource of the server of a Tool.
func ReadResource(ctx context.Context, p *tool.Pool, d *tool.Definition, uri string) (all []Content, err error) {
	err = speak(ctx, p, d, func(ctx context.Context, l *link) error {
		got, err := l.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return err
		}
		for _, c := range got.Contents {
			all = append(all, Content{URI: c.URI, Type: c.MIMEType, Text: c.Text, Data: c.Blob})
		}
		return nil
	})
	return all, wrapped(d, fmt.Sprintf("read its resource %q", uri), err)
}

// listed hands on all pages of a list.
func listed[T any](pages iter.Seq2[T, error], each func(T)) error {
	n := 0
	for one, err := range pages {
		if err != nil {
			return err
		}
		if n++; n > maxMaterial {
			return fmt.Errorf("there are more than %d", maxMaterial)
		}
		each(one)
	}
	return nil
}

// speak connects to the server of a Tool, as a run does, and ends the connection.
func speak(ctx context.Context, p *tool.Pool, d *tool.Definition, with func(context.Context, *link) error) error {
	if d.Spec.Source.MCP == nil {
		return reason.Usagef("tool %q is not an MCP server: its source is %s", d.Program(), d.Kind)
	}
	s := &source{pool: p, servers: map[string]*server{}}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	l, err := s.dialer(d)(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	return with(ctx, l)
}

// wrapped says what was asked of the server.
func wrapped(d *tool.Definition, what string, err error) error {
	if _, usage := errors.AsType[*reason.UsageError](err); err == nil || usage {
		return err
	}
	return tool.WithHint(fmt.Errorf("tool %q: %s: %w", d.Program(), what, err), "agentctl mcp test shows what the server does")
}
