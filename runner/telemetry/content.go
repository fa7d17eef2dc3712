package telemetry

import (
	"encoding/json"
	"unicode/utf8"

	"agentctl.dev/agentctl/runner/secret"
)

const (
	// maxText bounds a text of a captured message, maxMessages the messages of a span.
	maxText     = 16 << 10
	maxMessages = 64
	// cutMark ends a text of which only the beginning is sent.
	cutMark = " …[cut]"
)

// spoken is a message in the form that the conventions have.
type spoken struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// part is a piece of a message.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

// content collects what is said in a run, where that is to be sent.
type content struct {
	// redactor removes the secrets that the run knows by now. Those that it knew when an
	// event was recorded are not in the event.
	redactor func() *secret.Redactor
	// input is what was said since the last answer, output the answer that is written.
	input  []spoken
	output []part
}

// hear adds a message to those that the model reads next.
func (c *content) hear(role string, p part) {
	if c == nil || len(c.input) >= maxMessages {
		return
	}
	c.input = append(c.input, spoken{Role: role, Parts: []part{p}})
}

// say adds a part to the answer.
func (c *content) say(p part) {
	if c != nil && len(c.output) < maxMessages {
		c.output = append(c.output, p)
	}
}

// void drops an answer that does not count.
func (c *content) void() {
	if c != nil {
		c.output = nil
	}
}

// exchange returns the attributes of a request and its answer.
func (c *content) exchange(finish string) []attribute {
	if c == nil {
		return nil
	}
	var all []attribute
	if len(c.input) > 0 {
		all = append(all, text(attrInput, c.encode(c.input)))
	}
	if len(c.output) > 0 {
		all = append(all, text(attrOutput, c.encode([]spoken{{Role: "assistant", Parts: c.output, Finish: finish}})))
	}
	c.input, c.output = nil, nil
	return all
}

// said is a single text, nil without content.
func (c *content) said(key, value string) []attribute {
	if c == nil || value == "" {
		return nil
	}
	return []attribute{text(key, cut(c.redactor().String(value)))}
}

// encode redacts each text before it is cut: the beginning of a secret is a part of it.
func (c *content) encode(all []spoken) string {
	r := c.redactor()
	for i := range all {
		for j := range all[i].Parts {
			p := &all[i].Parts[j]
			p.Content, p.Response = cut(r.String(p.Content)), cut(r.String(p.Response))
			if len(p.Arguments) > 0 {
				p.Arguments = arguments(string(r.JSON(p.Arguments)))
			}
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "" // it holds nothing but texts, and JSON that was looked at
	}
	return string(r.JSON(b))
}

// arguments are JSON; what is not, or too long, becomes a string.
func arguments(s string) json.RawMessage {
	if len(s) <= maxText && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, err := json.Marshal(cut(s))
	if err != nil {
		return nil // a string is always JSON
	}
	return b
}

// cut bounds a text between two characters.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}
