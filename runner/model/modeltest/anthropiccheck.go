package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var anthropicMembers = strings.Fields(`cache_control container inference_geo max_tokens messages metadata model output_config service_tier
	stop_sequences stream system temperature thinking tool_choice tools top_k top_p`)

var toolUseID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

type anthropicRequest struct {
	Model       string             `json:"model"`
	Stream      bool               `json:"stream"`
	MaxTokens   int                `json:"max_tokens"`
	System      json.RawMessage    `json:"system"`
	Messages    []anthropicMessage `json:"messages"`
	Temperature *float64           `json:"temperature"`
	Tools       []struct {
		Type                  string          `json:"type"`
		Name                  string          `json:"name"`
		Description           string          `json:"description"`
		InputSchema           json.RawMessage `json:"input_schema"`
		CacheControl          *cacheControl   `json:"cache_control"`
		Strict                *bool           `json:"strict"`
		EagerInputStreaming   *bool           `json:"eager_input_streaming"`
		DeferLoading          *bool           `json:"defer_loading"`
		AllowedCallers, Input json.RawMessage `json:"-"`
	} `json:"tools"`
	ToolChoice *struct {
		Type                   string `json:"type"`
		Name                   string `json:"name"`
		DisableParallelToolUse *bool  `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
		Display      string `json:"display"`
	} `json:"thinking"`
	OutputConfig *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	CacheControl *cacheControl `json:"cache_control"`
	// what the request is not asked for, but may say.
	TopP          *float64        `json:"top_p"`
	TopK          *int            `json:"top_k"`
	StopSequences []string        `json:"stop_sequences"`
	Metadata      json.RawMessage `json:"metadata"`
	ServiceTier   string          `json:"service_tier"`
	InferenceGeo  string          `json:"inference_geo"`
	Container     string          `json:"container"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

type anthropicBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     *string         `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	Source       *mediaSource    `json:"source"`
	Title        string          `json:"title"`
	Context      string          `json:"context"`
	Citations    json.RawMessage `json:"citations"`
	CacheControl *cacheControl   `json:"cache_control"`
}

type mediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

func (anthropic) Check(body []byte) error {
	if err := members(body, anthropicMembers...); err != nil {
		return err
	}
	var r anthropicRequest
	if err := decode(body, &r); err != nil {
		return fmt.Errorf("the request has another shape: %w", err)
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("model: field required")
	case r.MaxTokens < 1:
		return fmt.Errorf("max_tokens: field required, at least 1")
	case !r.Stream:
		return fmt.Errorf("stream is not true")
	case len(r.Messages) == 0:
		return fmt.Errorf("messages: at least one message is required")
	case r.ToolChoice != nil && len(r.Tools) == 0:
		return fmt.Errorf("tool_choice: may only be specified while providing tools")
	case r.OutputConfig != nil && r.OutputConfig.Format != nil && (r.OutputConfig.Format.Type != "json_schema" || !isObject(r.OutputConfig.Format.Schema)):
		return fmt.Errorf("output_config.format is no schema")
	}
	if err := r.checkThinking(); err != nil {
		return err
	}
	for i, t := range r.Tools {
		if t.Type != "" && t.Type != "custom" || !callName.MatchString(t.Name) || !isSchema(t.InputSchema) {
			return fmt.Errorf("tools.%d is no tool with a name and the schema of an object", i)
		}
	}
	c := conversationCheck{thinks: r.Thinking != nil && r.Thinking.Type == "enabled"}
	if len(r.System) > 0 {
		if err := c.system(r.System); err != nil {
			return err
		}
	}
	if err := c.messages(r.Messages); err != nil {
		return err
	}
	if len(c.used) > 0 && len(r.Tools) == 0 {
		return fmt.Errorf("requests which include `tool_use` or `tool_result` blocks must define tools")
	}
	marks := c.marks
	for _, t := range r.Tools {
		marks = append(marks, t.CacheControl)
	}
	return checkCacheControl(append(marks, r.CacheControl))
}

func (r *anthropicRequest) checkThinking() error {
	t := r.Thinking
	if t == nil || t.Type == "disabled" {
		return nil
	}
	switch {
	case t.Type != "enabled" && t.Type != "adaptive":
		return fmt.Errorf("thinking.type: unknown %q", t.Type)
	case t.Type == "enabled" && (t.BudgetTokens < 1024 || t.BudgetTokens >= r.MaxTokens):
		return fmt.Errorf("thinking.budget_tokens: %d is below 1024 or not below max_tokens", t.BudgetTokens)
	case r.Temperature != nil && *r.Temperature != 1:
		return fmt.Errorf("temperature: may only be set to 1 when thinking is enabled")
	case r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool"):
		return fmt.Errorf("thinking may not be enabled when tool_choice forces tool use")
	}
	return nil
}

// checkCacheControl counts the marks of what may be kept.
func checkCacheControl(marks []*cacheControl) error {
	n := 0
	for _, m := range marks {
		if m == nil {
			continue
		}
		n++
		if m.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, m.TTL) {
			return fmt.Errorf("cache_control: unknown %+v", *m)
		}
	}
	if n > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", n)
	}
	return nil
}

// conversationCheck walks through the messages.
type conversationCheck struct {
	thinks bool
	// open are the calls of the last message, used all there were.
	open, used []string
	marks      []*cacheControl
}

func (c *conversationCheck) system(raw json.RawMessage) error {
	blocks, err := c.blocks(raw)
	for i, b := range blocks {
		if b.Type != "text" {
			err = fmt.Errorf("%d: a block of type %q", i, b.Type)
		}
	}
	if err != nil {
		return fmt.Errorf("system: %w", err)
	}
	return nil
}

// blocks reads content, a text or a list.
func (c *conversationCheck) blocks(raw json.RawMessage) ([]anthropicBlock, error) {
	var blocks []anthropicBlock
	if isText(raw) {
		blocks = []anthropicBlock{{Type: "text", Text: textOf(raw)}}
	} else if err := decode(raw, &blocks); err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("content is empty")
	}
	for i, b := range blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			return nil, fmt.Errorf("%d: text content blocks must contain non-whitespace text", i)
		}
		c.marks = append(c.marks, b.CacheControl)
	}
	return blocks, nil
}

func (c *conversationCheck) messages(messages []anthropicMessage) error {
	if messages[0].Role != "user" {
		return fmt.Errorf("messages: first message must use the \"user\" role")
	}
	for i, m := range messages {
		blocks, err := c.blocks(m.Content)
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		switch m.Role {
		case "user":
			err = c.user(blocks)
		case "assistant":
			last := i >= len(messages)-2
			if len(c.open) > 0 {
				err = fmt.Errorf("tool_use ids were found without tool_result blocks immediately after: %q", c.open)
			} else {
				err = c.assistant(blocks, last && c.thinks)
			}
		default:
			err = fmt.Errorf("unknown role %q", m.Role)
		}
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if messages[len(messages)-1].Role != "user" {
		return fmt.Errorf("the conversation must end with a user message")
	}
	return nil
}

// user wants the results of all open calls first.
func (c *conversationCheck) user(blocks []anthropicBlock) error {
	others := false
	for i, b := range blocks {
		if b.Type != "tool_result" {
			others = true
			if err := checkMedia(b); err != nil {
				return fmt.Errorf("content.%d: %w", i, err)
			}
			continue
		}
		at := slices.Index(c.open, b.ToolUseID)
		switch {
		case at < 0:
			return fmt.Errorf("content.%d: unexpected tool_use_id %q found in tool_result blocks", i, b.ToolUseID)
		case others:
			return fmt.Errorf("content.%d: tool_result blocks must come first", i)
		}
		c.open = slices.Delete(c.open, at, at+1)
		if len(b.Content) == 0 || isText(b.Content) {
			continue
		}
		inner, err := c.blocks(b.Content)
		for j, p := range inner {
			if err == nil {
				err = checkMedia(p)
			}
			if err == nil && b.IsError && p.Type != "text" {
				err = fmt.Errorf("all content must be type `text` if `is_error` is true")
			}
			if err != nil {
				return fmt.Errorf("content.%d.content.%d: %w", i, j, err)
			}
		}
		if err != nil {
			return fmt.Errorf("content.%d: %w", i, err)
		}
	}
	if len(c.open) > 0 {
		return fmt.Errorf("tool_use ids were found without tool_result blocks immediately after: %q", c.open)
	}
	return nil
}

// checkMedia wants a text, an image or a document.
func checkMedia(b anthropicBlock) error {
	s := b.Source
	switch {
	case b.Type == "text":
		return nil
	case (b.Type == "image" || b.Type == "document") && s == nil:
		return fmt.Errorf("source: field required")
	case b.Type == "image" && (s.Type == "base64" && slices.Contains(imageTypes, s.MediaType) && isBase64(s.Data) || s.Type == "url" && s.URL != ""):
		return nil
	case b.Type == "document" && (s.Type == "base64" && s.MediaType == "application/pdf" && isBase64(s.Data) || s.Type == "text" && s.MediaType == "text/plain" && s.Data != ""):
		return nil
	}
	return fmt.Errorf("no such %q", b.Type)
}

// assistant wants a thought first where there are any, and all as they were.
func (c *conversationCheck) assistant(blocks []anthropicBlock, thinks bool) error {
	thought, others := false, false
	for i, b := range blocks {
		switch b.Type {
		case "thinking", "redacted_thinking":
			if others && !thought {
				return fmt.Errorf("content.%d: thoughts must come first", i)
			}
			thought = true
			if b.CacheControl != nil {
				return fmt.Errorf("content.%d: cache_control cannot be set for thinking blocks", i)
			}
			whole := b.Type == "thinking" && b.Thinking != nil && genuine(b.Signature, sign("thinking", *b.Thinking))
			if !whole && (b.Type != "redacted_thinking" || !genuine(b.Data, sign("redacted", ""))) {
				return fmt.Errorf("content.%d: invalid `signature` in `thinking` block", i)
			}
			continue
		case "text":
		case "tool_use":
			if !toolUseID.MatchString(b.ID) || !callName.MatchString(b.Name) || !isObject(b.Input) {
				return fmt.Errorf("content.%d: malformed tool_use %q %q %s", i, b.ID, b.Name, b.Input)
			}
			if slices.Contains(c.used, b.ID) {
				return fmt.Errorf("content.%d: `tool_use` ids must be unique, found %q twice", i, b.ID)
			}
			c.open, c.used = append(c.open, b.ID), append(c.used, b.ID)
		default:
			return fmt.Errorf("content.%d: an assistant says no %q", i, b.Type)
		}
		others = true
	}
	first := blocks[0].Type == "thinking" || blocks[0].Type == "redacted_thinking"
	if thinks && !first && len(c.open) > 0 {
		return fmt.Errorf("expected `thinking` or `redacted_thinking`, but found %q: a final assistant message must start with a thinking block", blocks[0].Type)
	}
	return nil
}
