package openai

import (
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
	const golden = "testdata/chat.golden"
	c := appendAll(t, conversation(t), modeltest.Conversation(t))
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
	all := modeltest.Conversation(t)
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
