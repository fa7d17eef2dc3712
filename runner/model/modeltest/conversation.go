package modeltest

import (
	_ "embed"
	"encoding/json"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

//go:embed testdata/conversation.json
var conversation []byte

// Conversation returns a conversation as a journal keeps it: with every kind of
// part, every state and every end of a call, and the answers of models of every
// provider with what each wants back. The goldens of all providers are made of it.
func Conversation(t testing.TB) []*message.Message {
	t.Helper()
	var messages []*message.Message
	if err := json.Unmarshal(conversation, &messages); err != nil {
		t.Fatal(err)
	}
	kinds, states, codes := map[message.PartType]bool{}, map[message.ToolState]bool{}, map[message.ErrorCode]bool{}
	for _, m := range messages {
		for _, p := range m.Parts {
			kinds[p.Type] = true
			if p.Tool != nil {
				states[p.Tool.State] = true
				if p.Tool.Result != nil {
					codes[p.Tool.Result.Code] = true
				}
			}
		}
	}
	// Twelve kinds and one of a later version, four states, twelve codes and none.
	if len(kinds) != 13 || len(states) != 4 || len(codes) != 13 {
		t.Fatalf("the stored conversation has %d kinds of parts, %d states and %d codes: not all of them", len(kinds), len(states), len(codes))
	}
	return messages
}
