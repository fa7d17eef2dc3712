package modeltest

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// Golden compares the requests for the stored conversation, and for further messages, with
// a file: a request must never change, since caches, cassettes and replays depend on it.
// Update writes the file.
func Golden(t *testing.T, wire Wire, open Over, file string, update bool, more ...*message.Message) {
	t.Helper()
	p := begin(t, wire, open)
	p.say(t, Conversation(t)...)
	p.say(t, more...)
	got := p.request(t)
	if err := wire.Check([]byte(got)); err != nil {
		t.Errorf("the real API would refuse the request: %v", err)
	}
	if update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // the test names it
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Resets checks that a conversation is the same however it was built, in whatever order
// its messages are, and that a request in progress does not change with later messages.
func Resets(t *testing.T, wire Wire, open Over) {
	t.Helper()
	all := Conversation(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same orders every time
	reset := begin(t, wire, open)
	for range 300 {
		some := slices.Clone(all)
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = slices.Concat([]*message.Message{user("What is in the folder?")}, some[:random.IntN(len(some)+1)], []*message.Message{user("Go on.")})
		fresh := begin(t, wire, open)
		fresh.say(t, some...)
		want := fresh.request(t)
		if err := wire.Check([]byte(want)); err != nil {
			t.Fatalf("the real API would refuse the request: %v: %s", err, want)
		}
		reset.say(t, all...)
		before, again := reset.request(t), reset.Resend
		if err := reset.Reset(some); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, reset.request(t)); d != "" {
			t.Fatalf("(-appended +reset):\n%s", d)
		}
		reset.say(t, all...)
		body, err := again()
		if err != nil {
			t.Fatal(err)
		}
		sent, err := io.ReadAll(body)
		if d := cmp.Diff(before, string(sent)); d != "" || err != nil {
			t.Fatalf("a request changed while it was sent: %v (-before +after):\n%s", err, d)
		}
	}
}
