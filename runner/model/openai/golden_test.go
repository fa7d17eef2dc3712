package openai

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var update = flag.Bool("update", false, "write the request into testdata")

// stored is a conversation as a journal keeps it, with every kind of part and
// every state of a call.
func stored(t testing.TB) []*message.Message {
	t.Helper()
	b, err := os.ReadFile("testdata/conversation.json")
	if err != nil {
		t.Fatal(err)
	}
	var messages []*message.Message
	if err := json.Unmarshal(b, &messages); err != nil {
		t.Fatal(err)
	}
	return messages
}

func conversation(t testing.TB) *Conversation {
	t.Helper()
	blob := func(string) ([]byte, error) { return []byte("content"), nil }
	c, err := New(exchange.Config{Name: "fast", Model: "gpt-5-mini", Parameters: []byte(`{"temperature":0}`), Blob: blob}, message.Prompt{
		System: "Be brief.", Tools: []message.ToolSpec{{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func appendAll(t testing.TB, c *Conversation, messages []*message.Message) *Conversation {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatalf("message %s: %v", m.ID, err)
		}
	}
	return c
}

// The request is the same bytes for ever: caches, cassettes and replays live on it.
func TestEveryKindOfPartHasOneWireForm(t *testing.T) {
	const golden = "testdata/request.golden"
	messages := stored(t)
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
	c := appendAll(t, conversation(t), messages)
	got := append(append([]byte(nil), c.history...), c.withTool...)
	if err := modeltest.Chat.Check(got); err != nil {
		t.Errorf("the real API would refuse the request: %v", err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAppendingOneByOneIsResettingWithAll(t *testing.T) {
	all := stored(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		some := slices.Clone(all)
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:random.IntN(len(some)+1)]
		c := appendAll(t, conversation(t), some)
		reset := appendAll(t, conversation(t), all)
		before := string(reset.history)
		old := reset.history
		if err := reset.Reset(some); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(c.history), string(reset.history)); d != "" {
			t.Fatalf("(-appended +reset):\n%s", d)
		}
		if string(old) != before {
			t.Fatal("Reset wrote into the bytes of a request that may still be read")
		}
	}
}
