package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

type chatRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string   `json:"type"`
		Function chatTool `json:"function"`
	} `json:"tools"`
	ParallelToolCalls *bool `json:"parallel_tool_calls"`
}

type chatTool struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

var imageURL = regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$`)

func (chat) Check(body []byte) error {
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the request is no JSON: %w", err)
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("model is missing")
	case !r.Stream:
		return fmt.Errorf("stream is not true")
	case len(r.Messages) == 0:
		return fmt.Errorf("messages is empty")
	case r.ParallelToolCalls != nil && len(r.Tools) == 0:
		return fmt.Errorf("parallel_tool_calls is only allowed with tools")
	}
	for i, t := range r.Tools {
		if t.Type != "function" || !callName.MatchString(t.Function.Name) || len(t.Function.Parameters) == 0 {
			return fmt.Errorf("tools[%d] is no function", i)
		}
	}
	return checkChatMessages(r.Messages)
}

func checkChatMessages(messages []chatMessage) error {
	var open []string
	for i, m := range messages {
		if len(open) > 0 && m.Role != "tool" {
			return fmt.Errorf("messages[%d]: calls %q have no result", i, open)
		}
		switch m.Role {
		case "system", "user":
			if m.nothing() || string(m.Content) == `""` {
				return fmt.Errorf("messages[%d]: content is empty", i)
			}
			if err := checkChatContent(m.Content, m.Role == "user"); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		case "assistant":
			if m.nothing() && len(m.ToolCalls) == 0 {
				return fmt.Errorf("messages[%d]: neither content nor calls", i)
			}
			if !m.nothing() && !isText(m.Content) {
				return fmt.Errorf("messages[%d]: content is no text", i)
			}
			for _, c := range m.ToolCalls {
				var args map[string]any
				if c.ID == "" || c.Type != "function" || !callName.MatchString(c.Function.Name) || json.Unmarshal([]byte(c.Function.Arguments), &args) != nil {
					return fmt.Errorf("messages[%d]: malformed call %+v", i, c)
				}
				if slices.Contains(open, c.ID) {
					return fmt.Errorf("messages[%d]: call id %q twice", i, c.ID)
				}
				open = append(open, c.ID)
			}
		case "tool":
			if len(open) == 0 || open[0] != m.ToolCallID || !isText(m.Content) {
				return fmt.Errorf("messages[%d]: result of %q where %q is due", i, m.ToolCallID, open)
			}
			open = open[1:]
		default:
			return fmt.Errorf("messages[%d]: unknown role %q", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls %q have no result", open)
	}
	return nil
}

func (m *chatMessage) nothing() bool { return len(m.Content) == 0 || string(m.Content) == "null" }

// checkChatContent wants a text or, where media are allowed, a list of pieces.
func checkChatContent(content json.RawMessage, media bool) error {
	if isText(content) {
		return nil
	}
	var pieces []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Filename string `json:"filename"`
			FileData string `json:"file_data"`
		} `json:"file"`
	}
	if !media || json.Unmarshal(content, &pieces) != nil || len(pieces) == 0 {
		return fmt.Errorf("content is neither a text nor a list of pieces: %.80s", content)
	}
	for i, p := range pieces {
		text, image := p.Type == "text" && p.Text != "", p.Type == "image_url" && imageURL.MatchString(p.ImageURL.URL)
		mime, whole := dataURL(p.File.FileData)
		file := p.Type == "file" && p.File.Filename != "" && whole && mime == "application/pdf"
		if !text && !image && !file {
			return fmt.Errorf("content[%d] is neither a text nor an image nor a paper", i)
		}
	}
	return nil
}
