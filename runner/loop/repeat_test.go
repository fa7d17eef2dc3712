package loop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// prose is text of that many bytes without repetition.
func prose(n int, seed uint64) string {
	words := strings.Fields("the agent reads a file and finds that nothing in it explains why tests fail when run twice so it looks again elsewhere")
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[rnd.IntN(len(words))])
		b.WriteByte(" \n"[rnd.IntN(2)])
	}
	return b.String()[:n]
}

func rows(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i, i*7%1000)
	}
	return b.String()
}

// stopsAt feeds a text in pieces of that size and returns how much of it was
// written when it was stopped, 0 when it was not.
func stopsAt(text string, size int, tokens int64) int {
	r := newRepeat(DefaultRepeatedText, tokens)
	for i := size; ; i += size {
		end := min(i, len(text))
		if r.grown(text[:end]) {
			return min(r.next, r.long)
		}
		if end == len(text) {
			return 0
		}
	}
}

func TestRepeatedTextIsStopped(t *testing.T) {
	const limit = DefaultRepeatedText
	for name, c := range map[string]struct {
		reason string
		text   string
		tokens int64
		stops  bool
	}{
		"sentence":       {"one sentence", strings.Repeat("I will try again. ", 5000), 0, true},
		"after prose":    {"what is before it does not matter", prose(200_000, 2) + strings.Repeat(prose(300, 1), 300), 0, true},
		"below":          {"less than the limit", strings.Repeat("I will try again. ", limit/18), 0, false},
		"long block":     {"a block of some thousand bytes", strings.Repeat(prose(2500, 4), 30), 0, true},
		"one byte":       {"one sign", strings.Repeat("!", 4*limit+1), 0, true},
		"zeros":          {"a field of zeros", strings.Repeat("0, ", limit), 0, false},
		"digits":         {"figures alone", strings.Repeat("0123456789", limit/2), 0, true},
		"wide":           {"characters of more bytes", strings.Repeat("我再试一次,也许这次会成功。", 2500), 0, true},
		"prose":          {"ordinary text of few words", prose(600_000, 9), 0, false},
		"table":          {"rows that differ in a number", rows(200_000, "| row %d | the same words in every row of it | %d |\n"), 0, false},
		"counting":       {"a list that does not end", rows(500_000, "| row %d | the same words in every row of it | %d |\n"), 0, true},
		"it goes on":     {"a repetition in the middle of something else", strings.Repeat(prose(20_000, 3)+strings.Repeat("0, ", 10_000), 5), 0, false},
		"small model":    {"a model that may write 1000 tokens", strings.Repeat("I will try again. ", 2500), 1000, true},
		"small, shorter": {"what such a model may write after all", strings.Repeat("0, ", leastRepeated/3-1), 1000, false},
		"large model":    {"a model that may write more than the limit", strings.Repeat("0, ", limit/3-1), 200_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			whole := stopsAt(c.text, len(c.text), c.tokens)
			if (whole > 0) != c.stops {
				t.Errorf("%s: stopped after %d of %d bytes", c.reason, whole, len(c.text))
			}
			for _, size := range []int{7001, 1000} {
				if at := stopsAt(c.text, size, c.tokens); at != whole {
					t.Errorf("%s: in pieces of %d bytes it stops after %d bytes, else after %d", c.reason, size, at, whole)
				}
			}
		})
	}
}

func TestRepeatedTextCanBeSwitchedOff(t *testing.T) {
	text := strings.Repeat("I will try again. ", DefaultRepeatedText)
	if newRepeat(0, 0).grown(text) {
		t.Error("stopped with a limit of 0")
	}
	if !newRepeat(4096, 0).grown(text[:5000]) {
		t.Error("not stopped at a limit of 4096")
	}
}

// An answer that is stopped is kept and paid for: the provider has counted its
// tokens, though it never said how many.
func TestStuckAnswerIsKept(t *testing.T) {
	block := prose(400, 1)
	for name, kind := range map[string]message.DeltaKind{"text": message.DeltaText, "reasoning": message.DeltaReasoning, "arguments": message.DeltaTool} {
		limit := DefaultRepeatedText
		if kind == message.DeltaTool {
			limit *= argumentsFactor
		}
		t.Run(name, func(t *testing.T) {
			a := say("never complete")
			for range 5000 {
				d := message.Delta{Kind: kind, Text: block}
				if kind == message.DeltaTool {
					d.Tool, d.Call = "a", "c1"
				}
				a.emit = append(a.emit, d)
			}
			w := newWorld(t, a)
			var v *view.Run
			end := w.start(t.Context(), func(c *Config) {
				v, c.Guard = c.View, DefaultGuard()
				c.Limits.Price = func(message.ModelRef, message.Usage) (message.Cost, bool) { return 7, true }
			})
			if end.Reason != reason.LoopDetected || !strings.Contains(end.Hint, "spec.parameters") || !strings.Contains(end.Hint, "repeatedTextBytes") {
				t.Errorf("ended %s (%s; %s)", end.Reason, end.Message, end.Hint)
			}
			kept := 0
			for _, e := range w.events {
				switch d := e.Data.(type) {
				case event.TextEnd:
					kept += len(d.Text)
				case event.ReasoningEnd:
					kept += len(d.Text)
				case event.ToolInputDelta:
					kept += len(d.Text)
				}
			}
			if kept < limit || kept > 2*limit {
				t.Errorf("%d bytes of the answer are in the journal", kept)
			}
			if kind == message.DeltaText && len(end.Output) != kept {
				t.Errorf("the output has %d bytes, the answer %d", len(end.Output), kept)
			}
			if !v.Uncounted || v.Estimated.Output < int64(kept)/8 || v.Tokens.Total() != 0 || v.Cost != 0 {
				t.Errorf("counted %v, estimated %+v, tokens %+v, cost %v", !v.Uncounted, v.Estimated, v.Tokens, v.Cost)
			}
			if len(w.ran()) > 0 {
				t.Errorf("ran %v", w.ran())
			}
		})
	}
}

func TestAnswerThatRepeatsUntilItIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		end  reason.Reason
	}{
		"repeats": {strings.Repeat("I will try again. ", 1200), reason.LoopDetected},
		"short":   {strings.Repeat("I will try again. ", 200), reason.OutputTruncated},
		"prose":   {prose(40_000, 3), reason.OutputTruncated},
	} {
		a := say(c.text)
		a.out.Finish = message.FinishLength
		end := newWorld(t, a).start(t.Context(), func(cfg *Config) { cfg.Guard = DefaultGuard() })
		if end.Reason != c.end || end.Output != c.text {
			t.Errorf("%s: ended %s (%s) with %d of %d bytes", name, end.Reason, end.Message, len(end.Output), len(c.text))
		}
	}
}

func BenchmarkRepeat(b *testing.B) {
	for name, text := range map[string]string{
		"prose": prose(200_000, 1),
		"table": rows(200_000, "| row %d | the same words in every row of it | %d |\n"),
		"rule":  strings.Repeat("-", 60_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				stopsAt(text, 100, 0)
			}
		})
	}
}
