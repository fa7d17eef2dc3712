package modeltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responsesMembers are the members of a request that the API knows.
var responsesMembers = strings.Fields(`background context_management conversation include input instructions max_output_tokens max_tool_calls
	metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier
	service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`)

type responsesRequest struct {
	Model             string           `json:"model"`
	Stream            bool             `json:"stream"`
	Store             *bool            `json:"store"`
	Input             json.RawMessage  `json:"input"`
	MaxOutputTokens   *int             `json:"max_output_tokens"`
	Include           []string         `json:"include"`
	Tools             []responsesTool  `json:"tools"`
	ToolChoice        json.RawMessage  `json:"tool_choice"`
	ParallelToolCalls *bool            `json:"parallel_tool_calls"`
	Text              *responsesText   `json:"text"`
	Reasoning         *json.RawMessage `json:"reasoning"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type responsesText struct {
	Format *struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Strict      *bool           `json:"strict"`
	} `json:"format"`
	Verbosity string `json:"verbosity"`
}

func (responses) Check(body []byte) error {
	if err := members(body, responsesMembers...); err != nil {
		return err
	}
	var r responsesRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the request has another shape: %w", err)
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("model is missing")
	case !r.Stream:
		return fmt.Errorf("stream is not true")
	case r.Store == nil || *r.Store:
		// The API would take it, and keep the conversation.
		return fmt.Errorf("store is not false")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 16:
		return fmt.Errorf("max_output_tokens: %d is below 16", *r.MaxOutputTokens)
	case len(r.Tools) == 0 && (r.ToolChoice != nil || r.ParallelToolCalls != nil):
		return fmt.Errorf("tool_choice and parallel_tool_calls are only allowed with tools")
	}
	for i, t := range r.Tools {
		if t.Type != "function" || !callName.MatchString(t.Name) || !isSchema(t.Parameters) {
			return fmt.Errorf("tools[%d] is no function", i)
		}
		// Left out it is true, which a schema with an optional member is not made for.
		if t.Strict == nil || *t.Strict && !isClosed(t.Parameters) {
			return fmt.Errorf("tools[%d]: strict has to be false for such a schema", i)
		}
	}
	if t := r.Text; t != nil && t.Format != nil && t.Format.Type == "json_schema" && (!callName.MatchString(t.Format.Name) || !isObject(t.Format.Schema)) {
		return fmt.Errorf("text.format lacks a name or a schema")
	}
	if t := r.Text; t != nil && t.Format != nil && t.Format.Strict != nil && *t.Format.Strict && !isClosed(t.Format.Schema) {
		return fmt.Errorf("text.format: strict has to be false for such a schema")
	}
	if isText(r.Input) {
		if textOf(r.Input) == "" {
			return fmt.Errorf("input is empty")
		}
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(r.Input, &items) != nil || len(items) == 0 {
		return fmt.Errorf("input is neither a text nor a list of items")
	}
	return checkItems(items)
}

// itemState is what the items so far ask of the next one.
type itemState struct {
	// open are the calls that have no result yet, seen every call there was.
	open, seen []string
	// thought: the last item is a reasoning.
	thought bool
}

func checkItems(items []json.RawMessage) error {
	var s itemState
	for i, raw := range items {
		var head struct{ Type, Role string }
		if err := json.Unmarshal(raw, &head); err != nil {
			return fmt.Errorf("input[%d] is no item: %w", i, err)
		}
		if head.Type == "" {
			head.Type = "message"
		}
		follows := head.Type == "function_call" || head.Type == "reasoning" || head.Type == "message" && head.Role == "assistant"
		if s.thought && !follows {
			return fmt.Errorf("input[%d]: the reasoning in front of it was provided without its required following item", i)
		}
		s.thought = head.Type == "reasoning"
		if err := s.item(head.Type, raw); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	switch {
	case s.thought:
		return fmt.Errorf("the last reasoning was provided without its required following item")
	case len(s.open) > 0:
		return fmt.Errorf("no tool output found for function call %q", s.open)
	}
	return nil
}

func (s *itemState) item(kind string, raw []byte) error {
	switch kind {
	case "message":
		if len(s.open) > 0 {
			return fmt.Errorf("no tool output found for function call %q", s.open)
		}
		return checkMessageItem(raw)
	case "reasoning":
		return checkReasoningItem(raw)
	case "function_call":
		return s.call(raw)
	case "function_call_output":
		return s.output(raw)
	}
	return fmt.Errorf("unknown type %q", kind)
}

func checkReasoningItem(raw []byte) error {
	var r struct {
		Type, ID, Status string
		Summary          []struct{ Type, Text string }
		Content          json.RawMessage
		Encrypted        string `json:"encrypted_content"`
	}
	if err := decode(raw, &r); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range r.Summary {
		if p.Type != "summary_text" {
			return fmt.Errorf("summary: unknown type %q", p.Type)
		}
		text.WriteString(p.Text)
	}
	switch {
	case r.Summary == nil:
		return fmt.Errorf("summary is missing")
	case !strings.HasPrefix(r.ID, "rs_"):
		return fmt.Errorf("id: %q does not begin with rs", r.ID)
	case !genuine(r.Encrypted, sign("reasoning", text.String())):
		return fmt.Errorf("the encrypted content for item %s could not be verified", r.ID)
	}
	return nil
}

func (s *itemState) call(raw []byte) error {
	var c struct {
		Type, ID, Status, Name, Arguments string
		CallID                            string `json:"call_id"`
	}
	if err := decode(raw, &c); err != nil {
		return err
	}
	switch {
	case c.ID != "" && !strings.HasPrefix(c.ID, "fc_"):
		return fmt.Errorf("id: %q does not begin with fc", c.ID)
	case c.CallID == "" || len(c.CallID) > 64 || !callName.MatchString(c.Name) || !isObject([]byte(c.Arguments)):
		return fmt.Errorf("malformed call %+v", c)
	case slices.Contains(s.seen, c.CallID):
		return fmt.Errorf("call id %q twice", c.CallID)
	}
	s.open, s.seen = append(s.open, c.CallID), append(s.seen, c.CallID)
	return nil
}

func (s *itemState) output(raw []byte) error {
	var o struct {
		Type, ID, Status string
		Output           json.RawMessage
		CallID           string `json:"call_id"`
	}
	if err := decode(raw, &o); err != nil {
		return err
	}
	at := slices.Index(s.open, o.CallID)
	if at < 0 {
		return fmt.Errorf("no tool call found for function call output with call_id %q", o.CallID)
	}
	s.open = slices.Delete(s.open, at, at+1)
	if isText(o.Output) {
		return nil
	}
	return checkInputContent(o.Output, "user")
}

func checkMessageItem(raw []byte) error {
	var m struct {
		Type, ID, Status, Role, Phase string
		Content                       json.RawMessage
	}
	if err := decode(raw, &m); err != nil {
		return err
	}
	if !slices.Contains([]string{"user", "assistant", "system", "developer"}, m.Role) {
		return fmt.Errorf("unknown role %q", m.Role)
	}
	if m.ID != "" && !strings.HasPrefix(m.ID, "msg_") {
		return fmt.Errorf("id: %q does not begin with msg", m.ID)
	}
	if isText(m.Content) {
		if textOf(m.Content) == "" {
			return fmt.Errorf("content is empty")
		}
		return nil
	}
	return checkInputContent(m.Content, m.Role)
}

// checkInputContent wants a list of pieces: an assistant's are outputs.
func checkInputContent(raw []byte, role string) error {
	var pieces []struct {
		Type, Text, Detail, Filename string
		ImageURL                     string          `json:"image_url"`
		FileData                     string          `json:"file_data"`
		FileURL                      string          `json:"file_url"`
		FileID                       string          `json:"file_id"`
		Annotations                  json.RawMessage `json:"annotations"`
		Logprobs                     json.RawMessage `json:"logprobs"`
		Refusal                      string          `json:"refusal"`
	}
	if err := decode(raw, &pieces); err != nil || len(pieces) == 0 {
		return fmt.Errorf("content is neither a text nor a list of pieces: %.80s (%w)", raw, err)
	}
	for i, p := range pieces {
		var ok bool
		switch p.Type {
		case "input_text":
			ok = role != "assistant" && p.Text != ""
		case "input_image":
			mime, whole := dataURL(p.ImageURL)
			ok = role == "user" && (whole && slices.Contains(imageTypes, mime) || strings.HasPrefix(p.ImageURL, "https://"))
		case "input_file":
			mime, whole := dataURL(p.FileData)
			ok = role == "user" && whole && mime == "application/pdf" && p.Filename != ""
		case "output_text":
			ok = role == "assistant" && p.Text != ""
		case "refusal":
			ok = role == "assistant" && p.Refusal != ""
		}
		if !ok {
			return fmt.Errorf("content[%d]: a message of role %q holds no such %q", i, role, p.Type)
		}
	}
	return nil
}
