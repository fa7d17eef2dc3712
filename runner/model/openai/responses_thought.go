package openai

import (
	"encoding/json"

	"agentctl.dev/agentctl/runner/model"
)

// The API accepts a reasoning item only in front of the item that followed it,
// and refuses it without. So an item is kept in the metadata of that text or
// call: when that is removed, the item is removed as well.

// followed is the metadata of a call.
type followed struct {
	Thoughts []json.RawMessage `json:"reasoning,omitempty"`
}

// spoken is one of the messages that make up the text of an answer.
type spoken struct {
	followed
	// Size in bytes.
	Size int `json:"size"`
	// Phase is what kind of message the model calls it, commentary or
	// final_answer. The API expects it back.
	Phase string `json:"phase,omitempty"`

	text string
}

// between separates two messages in the one text of an answer.
const between = "\n\n"

// spokenIn returns the messages of an answer's text. Without a list of messages
// that fits the text, the text is one message.
func spokenIn(said model.PastAnswer) []spoken {
	if said.Text == "" {
		return nil
	}
	one := []spoken{{text: said.Text}}
	if said.TextMetadata == nil {
		return one
	}
	var all []spoken
	if json.Unmarshal(said.TextMetadata, &all) != nil || len(all) == 0 {
		return one
	}
	rest := said.Text
	for i := range all {
		s := &all[i]
		if s.Size <= 0 || s.Size > len(rest) || i > 0 && (len(rest) < len(between)+s.Size || rest[:len(between)] != between) {
			return one
		}
		if i > 0 {
			rest = rest[len(between):]
		}
		s.text, rest = rest[:s.Size], rest[s.Size:]
	}
	if rest != "" {
		return one
	}
	return all
}

// thoughtsBefore returns the reasoning items in front of a call.
func thoughtsBefore(metadata json.RawMessage) []json.RawMessage {
	var f followed
	if len(metadata) == 0 || json.Unmarshal(metadata, &f) != nil {
		return nil
	}
	return f.Thoughts
}

// encode writes metadata: plain values that cannot fail.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
