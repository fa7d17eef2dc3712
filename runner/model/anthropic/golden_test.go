package anthropic

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
	c, err := New(exchange.Config{
		Name: "careful", Model: "claude-sonnet-4-5", Parameters: []byte(`{"temperature":0,"stop":"END","user":"u-1"}`),
		Blob: func(string) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n"), nil },
	}, message.Prompt{
		System: "Be brief.", Tools: []message.ToolSpec{
			{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object"}`)},
			{Name: "read", Parameters: []byte(`{"properties":{"path":{"type":"string"}},"anyOf":[{"required":["path"]}]}`)},
		},
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

// request is what Next would send.
func request(c *Conversation) []byte {
	limit := c.given.most(c.cfg.Model, 0)
	return slices.Concat(c.history.b, c.history.closing(cached), c.end(c.choice(false), c.given.thinks(limit, c.history.unthought)))
}

// The request is the same bytes for ever: caches, cassettes and replays live on it.
func TestEveryKindOfPartHasOneWireForm(t *testing.T) {
	const golden = "testdata/request.golden"
	got := request(appendAll(t, conversation(t), modeltest.Conversation(t)))
	if err := modeltest.Anthropic.Check(got); err != nil {
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
		// In whatever order they stand, the API takes them.
		if err := modeltest.Anthropic.Check(request(c)); err != nil {
			t.Fatalf("%v: %s", err, request(c))
		}
		reset := appendAll(t, conversation(t), all)
		before := string(reset.history.b)
		old := reset.history.b
		if err := reset.Reset(some); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(request(c)), string(request(reset))); d != "" {
			t.Fatalf("(-appended +reset):\n%s", d)
		}
		if string(old) != before {
			t.Fatal("Reset wrote into the bytes of a request that may still be read")
		}
	}
}

// What was sent stays what is sent: a cache keeps a beginning only.
func TestHistoryOnlyGrowsByWhatIsAppended(t *testing.T) {
	c := conversation(t)
	for _, m := range modeltest.Conversation(t) {
		before := slices.Clone(c.history.b)
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.history.b[:len(before)], before) {
			t.Fatalf("message %s changed what stood before it", m.ID)
		}
	}
}
