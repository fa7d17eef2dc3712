package anthropic

import (
	"strings"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

const (
	// cached asks the API to cache the request up to the block that has it.
	// Three of at most four are used: after the tools, after the system prompt,
	// and after the newest message.
	cached = `,"cache_control":{"type":"ephemeral"}`
	// carryOn is sent between two messages of the model, and after its last one:
	// the API answers to a user only, and newer models refuse to continue their
	// own message.
	carryOn = "Continue."
)

// history is a request up to its last message. The last block of a user's message
// is open: what comes next may belong to the same message, and the newest one is
// marked for the cache, in a request but not in what is kept.
type history struct {
	b    []byte
	open bool
	// calls is set when the request has tool calls, unthought when the last
	// message of the model has some and does not begin with a thought.
	calls, unthought bool
	// paused is set when the last message is a turn that the API continues: what
	// it adds follows without a message of the user in between.
	paused bool
}

// user begins a block of a user's message: of the open message, or of a new
// one.
func (h history) user() history {
	if h.open {
		h.b = append(h.b, `},`...)
		return h
	}
	h.b, h.open, h.paused = append(jsonpass.Open(h.b), `{"role":"user","content":[`...), true, false
	return h
}

// text adds a text to the user's message. What is blank is left out: the API
// refuses it.
func (h history) text(s string) history {
	if blank(s) {
		return h
	}
	h = h.user()
	h.b = jsonpass.AppendString(append(h.b, `{"type":"text","text":`...), s)
	return h
}

// assistant begins a message of the model. A message that continues a paused
// turn follows that turn directly; the API reads the two as one.
func (h history) assistant(continues bool) history {
	if continues {
		h.b = append(h.b, `,{"role":"assistant","content":[`...)
		return h
	}
	if !h.open {
		h = h.text(carryOn)
	}
	h.b, h.open = append(h.b, `}]},{"role":"assistant","content":[`...), false
	return h
}

// closing returns what completes the list of messages of a history, with a mark
// in the last block.
func (h history) closing(mark string) []byte {
	if h.open {
		return []byte(mark + `}]}`)
	}
	if h.paused {
		return nil // the API continues its own turn
	}
	var b []byte
	if h.b[len(h.b)-1] != '[' {
		b = append(b, ',')
	}
	b = append(b, history{}.text(carryOn).b...)
	return append(b, mark+`}]}`...)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
