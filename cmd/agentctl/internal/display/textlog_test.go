package display

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// TestALogKeepsPartsApart lets the pieces of three texts come in every mixture,
// cut anywhere, in the middle of a character too.
func TestALogKeepsPartsApart(t *testing.T) {
	texts := []string{"The first, é, which is\none text.", "第二 part\n", "and 🙂 the last"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // it chooses an order
		synctest.Test(t, func(t *testing.T) {
			var b drawn
			tty := seed%2 == 0
			log := NewTextLog(&Screen{w: &b, TTY: tty, Live: tty})
			rest, begun := slices.Clone(texts), []int{}
			ended := make([]bool, len(texts))
			for slices.Contains(ended, false) {
				i := rnd.IntN(len(texts))
				if ended[i] {
					continue
				}
				e := event.Event{Message: "m", Part: fmt.Sprint("p", i)}
				if rest[i] == "" {
					ended[i] = true
					e.Data = event.TextEnd{Text: texts[i]}
				} else {
					n := min(1+rnd.IntN(6), len(rest[i]))
					e.Data = event.TextDelta{Text: rest[i][:n]}
					rest[i] = rest[i][n:]
				}
				if !slices.Contains(begun, i) {
					begun = append(begun, i)
				}
				if err := log.Event(e); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			want := ""
			for _, i := range begun {
				want += endLine(texts[i])
			}
			if got := b.String(); got != want {
				t.Fatalf("seed %d: got %q, want %q", seed, got, want)
			}
		})
	}
}

func TestALogShowsWhatNoPieceHasBrought(t *testing.T) {
	var b bytes.Buffer
	log := NewTextLog(&Screen{w: &b})
	for _, e := range []event.Event{
		{Message: "m1", Part: "a", Data: event.TextEnd{Text: "whole\x1b[2J\r\n"}}, // a pipe gets it as it is
		{Message: "m2", Part: "b", Data: event.TextDelta{Text: "void"}},
		{Message: "m2", Data: event.ModelRetry{}},
		{Message: "m2", Part: "c", Data: event.TextDelta{Text: "an"}},
		{Message: "m2", Part: "d", Data: event.TextDelta{Text: "held"}},
		{Message: "m2", Part: "c", Data: event.TextDelta{Text: "swer"}},
	} {
		if err := log.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "whole\x1b[2J\r\nvoid\nanswer\nheld\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	failing := NewTextLog(&Screen{w: &failing{}})
	_ = failing.Event(event.Event{Message: "m", Part: "a", Data: event.TextDelta{Text: "x"}})
	if err := failing.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("the broken output is not reported: %v", err)
	}
}
