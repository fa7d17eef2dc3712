package mcp

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/tool"
)

// maxStructured bounds the structured result that is kept as metadata.
const maxStructured = 1 << 20

// reply is the result of a call: its texts, a line for each part that is none, and the
// files among them as attachments.
func reply(server string, r *mcp.CallToolResult) tool.Reply {
	out := tool.Reply{Failed: r.IsError, Writes: true}
	if r.IsError {
		out.Code = message.CodeTool
	}
	var parts []string
	for _, c := range r.Content {
		if text := part(server, c, &out); text != "" {
			parts = append(parts, text)
		}
	}
	if r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			if len(parts) == 0 {
				parts = append(parts, string(b))
			}
			if len(b) <= maxStructured {
				out.Metadata = json.RawMessage(`{"structuredContent":` + string(b) + `}`)
			}
		}
	}
	out.Output = strings.Join(parts, "\n")
	return out
}

// part is what the model reads of one part of a result.
func part(server string, c mcp.Content, out *tool.Reply) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		out.Attachments = append(out.Attachments, tool.Attachment{Name: "image", Type: c.MIMEType, Content: c.Data})
		return fmt.Sprintf("[image %s, %d bytes]", clean(c.MIMEType), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes: it cannot be shown]", clean(c.MIMEType), len(c.Data))
	case *mcp.ResourceLink:
		return "[" + linked(server, c) + "]"
	case *mcp.EmbeddedResource:
		return embedded(server, c.Resource, out)
	}
	return fmt.Sprintf("[a part of type %T that this version does not know]", c)
}

// resource is the name of a server's resource: mcp://SERVER/URI.
func resource(server, uri string) string { return "mcp://" + server + "/" + url.PathEscape(uri) }

func linked(server string, c *mcp.ResourceLink) string {
	facts := []string{"resource " + resource(server, c.URI)}
	if name := clean(c.Name); name != "" {
		facts = append(facts, name)
	}
	if c.MIMEType != "" {
		facts = append(facts, clean(c.MIMEType))
	}
	if c.Size != nil {
		facts = append(facts, fmt.Sprintf("%d bytes", *c.Size))
	}
	if text := clean(c.Description); text != "" {
		facts = append(facts, text)
	}
	return strings.Join(facts, ", ")
}

func embedded(server string, r *mcp.ResourceContents, out *tool.Reply) string {
	if r == nil {
		return ""
	}
	head := "resource " + resource(server, r.URI)
	if r.MIMEType != "" {
		head += ", " + clean(r.MIMEType)
	}
	if r.Blob == nil {
		return "[" + head + "]\n" + r.Text
	}
	if strings.HasPrefix(r.MIMEType, "image/") || r.MIMEType == "application/pdf" {
		out.Attachments = append(out.Attachments, tool.Attachment{Name: path.Base(r.URI), Type: r.MIMEType, Content: r.Blob})
		return fmt.Sprintf("[%s, %d bytes]", head, len(r.Blob))
	}
	return fmt.Sprintf("[%s, %d bytes: they cannot be shown]", head, len(r.Blob))
}
