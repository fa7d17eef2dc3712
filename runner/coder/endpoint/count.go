package endpoint

import (
	"bytes"
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/coder"
)

// longest is the longest piece of an answer that is read for its count.
const longest = 16 << 20

// counter reads the count of tokens in an answer that is passed on.
type counter struct {
	api    coder.API
	stream bool

	usage   message.Usage
	counted bool
	// cut: the answer ended before its end, as far as the program has read it.
	cut   bool
	bytes int
	line  []byte
}

// add takes bytes of the answer.
func (c *counter) add(b []byte) {
	c.bytes += len(b)
	if len(c.line)+len(b) > longest {
		c.line = nil
		return
	}
	c.line = append(c.line, b...)
	if !c.stream {
		return
	}
	for {
		line, rest, whole := bytes.Cut(c.line, []byte("\n"))
		if !whole {
			return
		}
		c.event(line)
		c.line = append(c.line[:0], rest...)
	}
}

// end takes the end of the answer.
func (c *counter) end() {
	if c.stream {
		c.event(c.line)
		return
	}
	c.read(c.line)
}

func (c *counter) event(line []byte) {
	if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok && bytes.Contains(data, []byte(`"usage"`)) {
		c.read(data)
	}
}

// details are the parts of a count.
type details struct {
	Cached    int64 `json:"cached_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
}

// usage is a count in any of the wire formats.
type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheRead        int64 `json:"cache_read_input_tokens"`
	CacheWrite       int64 `json:"cache_creation_input_tokens"`

	PromptDetails     details `json:"prompt_tokens_details"`
	CompletionDetails details `json:"completion_tokens_details"`
	InputDetails      details `json:"input_tokens_details"`
	OutputDetails     details `json:"output_tokens_details"`
}

// mostTokens is more than any answer has: what a server says beyond it is not believed.
const mostTokens = 1 << 32

// bound keeps numbers that are none of tokens from the sums of the run.
func (u *usage) bound() {
	for _, n := range []*int64{
		&u.PromptTokens, &u.CompletionTokens, &u.InputTokens, &u.OutputTokens, &u.CacheRead, &u.CacheWrite, &u.PromptDetails.Cached,
		&u.PromptDetails.Reasoning, &u.CompletionDetails.Cached, &u.CompletionDetails.Reasoning, &u.InputDetails.Cached,
		&u.InputDetails.Reasoning, &u.OutputDetails.Cached, &u.OutputDetails.Reasoning,
	} {
		*n = min(max(*n, 0), mostTokens)
	}
}

// read takes the count of a piece of JSON: the newest counts, except that a server of
// messages tells the input in its first event and the output in later ones.
func (c *counter) read(data []byte) {
	var e struct {
		Usage    *usage `json:"usage"`
		Response struct {
			Usage *usage `json:"usage"`
		} `json:"response"`
		Message struct {
			Usage *usage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	u := e.Usage
	if u == nil {
		u = e.Response.Usage
	}
	if u == nil {
		u = e.Message.Usage
	}
	if u == nil {
		return
	}
	c.counted = true
	u.bound()
	switch c.api {
	case coder.Chat:
		c.usage = message.Usage{
			Input: max(0, u.PromptTokens-u.PromptDetails.Cached), CacheRead: u.PromptDetails.Cached,
			Output: u.CompletionTokens, Reasoning: u.CompletionDetails.Reasoning,
		}
	case coder.Responses:
		c.usage = message.Usage{
			Input: max(0, u.InputTokens-u.InputDetails.Cached), CacheRead: u.InputDetails.Cached,
			Output: u.OutputTokens, Reasoning: u.OutputDetails.Reasoning,
		}
	case coder.Messages:
		c.usage.Input, c.usage.CacheRead = max(c.usage.Input, u.InputTokens), max(c.usage.CacheRead, u.CacheRead)
		c.usage.CacheWrite, c.usage.Output = max(c.usage.CacheWrite, u.CacheWrite), max(c.usage.Output, u.OutputTokens)
	}
}
