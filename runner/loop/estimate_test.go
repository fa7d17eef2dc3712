package loop

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

func user(text string) *message.Message {
	return &message.Message{Role: message.RoleUser, Parts: []message.Part{{Type: message.PartText, Text: text}}}
}

func TestSizeCountsWhatIsSent(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		reason string
		part   message.Part
		want   int64
	}{
		"text":      {"text is sent", message.Part{Type: message.PartText, Text: text(100)}, 100},
		"ignored":   {"text for people is not", message.Part{Type: message.PartText, Text: text(100), Ignored: true}, 0},
		"reasoning": {"reasoning is not", message.Part{Type: message.PartReasoning, Text: text(100)}, 0},
		"file":      {"media have a price of their own", message.Part{Type: message.PartFile, File: &message.File{URL: "data:" + text(9999)}}, mediaBytes},
		"step":      {"a step is nothing a model reads", message.Part{Type: message.PartStepStart, Step: &message.Step{Step: 1}}, 0},
		"open call": {"the call alone", message.Part{Type: message.PartTool, Tool: &message.ToolPart{Tool: "read", Raw: text(10)}}, 14},
		"call": {
			"the call and its result", message.Part{Type: message.PartTool, Tool: &message.ToolPart{
				Tool: "read", Raw: text(10), Result: &message.ToolResult{Text: text(1000), Output: text(900), Metadata: json.RawMessage(`{"a":1}`)},
			}}, 1014,
		},
		"pruned": {
			"its marker", message.Part{Type: message.PartTool, Tool: &message.ToolPart{
				Tool: "read", Raw: text(10), Compacted: 1, Result: &message.ToolResult{Text: text(1000), Blob: "b"},
			}}, 14 + markerLength,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := size(&message.Message{Parts: []message.Part{c.part}}); got != c.want {
				t.Errorf("%s: %d bytes, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestEstimateLearnsFromWhatIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		usage  message.Usage
		add    int // bytes of the next user message
		want   int64
	}{
		"nothing counted":   {"four bytes a token", message.Usage{}, 400, 1100},
		"exact":             {"as many as were thought", message.Usage{Input: 1000}, 400, 1100},
		"cache":             {"what was cached is part of the request", message.Usage{Input: 100, CacheRead: 800, CacheWrite: 100}, 400, 1100},
		"twice as many":     {"a factor of 2", message.Usage{Input: 2000}, 400, 2200},
		"half as many":      {"a factor of a half", message.Usage{Input: 500}, 400, 600}, // never below what was counted and a quarter of the rest
		"absurdly many":     {"the factor has a bound, the count stands", message.Usage{Input: 100_000}, 400, 100_100},
		"absurdly few":      {"a factor of a quarter at least", message.Usage{Input: 1}, 400, 275},
		"answer":            {"the answer is part of the next request", message.Usage{Input: 1000, Output: 5000}, 400, 6100},
		"reasoning":         {"what was thought is not", message.Usage{Input: 1000, Output: 5000, Reasoning: 4900}, 400, 1200},
		"output only":       {"no count of the input says nothing about it", message.Usage{Output: 10}, 400, 1100},
		"a broken provider": {"less than nothing is no count", message.Usage{Input: -5}, 400, 1100},
	} {
		t.Run(name, func(t *testing.T) {
			e := estimate{bytes: 1000}
			e.add(user(strings.Repeat("x", 3000)))
			e.saw(c.usage)
			e.add(user(strings.Repeat("x", c.add)))
			if got := e.next(); got != c.want {
				t.Errorf("%s: %d tokens, want %d", c.reason, got, c.want)
			}
			if back := e.tokens(e.fit(10_000)); back < 9990 || back > 10_010 {
				t.Errorf("10,000 tokens are %d bytes and these %d tokens", e.fit(10_000), back)
			}
		})
	}
}

func TestEstimateForgetsACountWhenItShrinks(t *testing.T) {
	e := estimate{bytes: 100_000}
	e.saw(message.Usage{Input: 50_000, Output: 1000})
	e.shrunk(10_000)
	if got := e.next(); got != 5000 {
		t.Errorf("%d tokens, want 5,000: the factor stays, the count does not", got)
	}
}

// What is added piece by piece is what a recount of the whole gives.
func TestEstimateIsIncremental(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		v, e := &view.Run{}, estimate{bytes: 777}
		for i := range 40 {
			m := user(strings.Repeat("q", rnd.IntN(500)))
			if rnd.IntN(3) > 0 {
				m.Role, m.Usage = message.RoleAssistant, message.Usage{Input: rnd.Int64N(5000), Output: rnd.Int64N(50)}
				m.Time.Completed = int64(i + 1)
				m.Parts = append(m.Parts, message.Part{Type: message.PartTool, Tool: &message.ToolPart{
					Tool: "t", Raw: strings.Repeat("a", rnd.IntN(50)), Result: &message.ToolResult{Text: strings.Repeat("r", rnd.IntN(3000))},
				}})
				e.saw(m.Usage)
			}
			e.add(m)
			v.Messages = append(v.Messages, m)
		}
		var again estimate
		again.rebuild(777, v, v.History())
		if again != e {
			t.Fatalf("step by step %+v, at once %+v", e, again)
		}
	}
}

func TestCountsFromBeforeAPruningSayNothing(t *testing.T) {
	pruned := &message.Message{Role: message.RoleAssistant, Time: message.Time{Completed: 5}, Usage: message.Usage{Input: 90_000}, Parts: []message.Part{
		{Type: message.PartTool, Tool: &message.ToolPart{Tool: "t", Compacted: 9, Result: &message.ToolResult{Text: "x", Blob: "b"}}},
	}}
	v := &view.Run{Messages: []*message.Message{user("do it"), pruned}}
	var e estimate
	e.rebuild(4000, v, v.History())
	if e.next() > 1100 {
		t.Errorf("%d tokens are estimated", e.next())
	}
	v.Messages = append(v.Messages, &message.Message{Role: message.RoleAssistant, Time: message.Time{Completed: 12}, Usage: message.Usage{Input: 2000}})
	e.rebuild(4000, v, v.History())
	if e.next() < 2000 {
		t.Errorf("%d tokens are estimated, 2,000 were counted", e.next())
	}
}

func BenchmarkEstimate(b *testing.B) {
	m := user(strings.Repeat("x", 4096))
	e := estimate{bytes: 1000}
	b.ReportAllocs()
	for b.Loop() {
		e.add(m)
		e.saw(message.Usage{Input: 1000})
		if e.next() == 0 {
			b.Fatal("nothing is estimated")
		}
	}
}
