package view

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestAShortenedConversationHasARecap(t *testing.T) {
	call := func(metadata string, writes bool) message.Part {
		return message.Part{Type: message.PartTool, Tool: &message.ToolPart{State: message.StateCompleted, Result: &message.ToolResult{Writes: writes, Metadata: json.RawMessage(metadata)}}}
	}
	r := &Run{Messages: []*message.Message{
		{ID: "u", Role: message.RoleUser, Parts: []message.Part{{Type: message.PartText, Text: "go"}}},
		{ID: "a", Role: message.RoleAssistant, Parts: []message.Part{
			call(`{"path":"b","diff":"--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"}`, true),
			call(`{"path":"b","diff":"@@ -1 +1 @@\n+z\n"}`, true),
			call(`{"files":[{"path":"a","kind":"add"},{"path":"c","diff":"@@\n+++ plus\n"}]}`, true),
			call(`{"path":"read","diff":"@@\n+x\n"}`, false),
			call(`{"path":5}`, true), call(`no json`, true), call(``, true),
		}},
		{ID: "u2", Role: message.RoleUser},
	}}
	r.recap("## Objective\n\n" + strings.Repeat("é", 200) + "\n## Next\n")
	got := r.Messages[0].Recap
	if got == nil || r.Messages[2].Recap != nil {
		t.Fatalf("recaps: %+v, %+v", got, r.Messages[2].Recap)
	}
	if want := strings.Repeat("é", 99) + "…"; got.Title != want || !strings.HasPrefix(got.Body, "## Objective") {
		t.Errorf("title %q, body %.20q", got.Title, got.Body)
	}
	diffs, err := json.Marshal(got.Diffs)
	if want := `[{"file":"a","additions":0,"deletions":0},{"file":"b","additions":3,"deletions":1},{"file":"c","additions":1,"deletions":0}]`; err != nil || string(diffs) != want {
		t.Errorf("diffs %s, want %s", diffs, want)
	}
	if r.recap(""); r.Messages[0].Recap != got {
		t.Error("a summary of nothing replaces the recap")
	}
}
