package openai

import (
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/model"
)

// foreignAPI is another API that a server may have answered with by mistake.
type foreignAPI struct {
	name string
	// set is the setting that would be right.
	set string
}

var (
	speaksChat      = &foreignAPI{"the chat completions API", "spec.api: chat"}
	speaksResponses = &foreignAPI{"the responses API", "spec.api: responses"}
	speaksMessages  = &foreignAPI{"Anthropic's messages API", "spec.provider: anthropic"}
	speaksGemini    = &foreignAPI{"the Gemini API", "spec.provider: gemini"}
)

// typed returns the API that has events of such a type, nil if it is unknown.
func typed(kind []byte) *foreignAPI {
	switch s := string(kind); {
	case strings.HasPrefix(s, "response."):
		return speaksResponses
	case strings.HasPrefix(s, "content_block_"), s == "message_start", s == "message_delta", s == "message_stop":
		return speaksMessages
	}
	return nil
}

// shaped returns the API whose answers have a member of this name, nil if there
// is none.
func shaped(member []byte) *foreignAPI {
	switch string(member) {
	case "choices":
		return speaksChat
	case "candidates", "usageMetadata", "promptFeedback":
		return speaksGemini
	}
	return nil
}

// mistaken is the error for a server that speaks another API.
func mistaken(other *foreignAPI, data []byte) error {
	return &model.Error{
		Kind: model.Never, Class: "protocol",
		Err:  fmt.Errorf("the server speaks %s: %s", other.name, model.Quote(data)),
		Hint: "set " + other.set + ", or another spec.baseURL",
	}
}
