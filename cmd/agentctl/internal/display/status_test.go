package display

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// subrun makes a teller of the events of a run below.
func subrun(r *textRun, run string, parent event.Parent) func(event.Event) {
	seq := int64(0)
	tell := func(e event.Event) {
		seq++
		e.Seq, e.Run, e.Time = seq, run, time.Now()
		r.Child(e)
	}
	agent, _, _ := strings.Cut(run, "-")
	tell(event.Event{Message: "u", Data: event.RunStarted{Agent: agent, Model: message.ModelRef{Name: "fast"}, Prompt: "look at it", Parent: &parent}})
	tell(event.Event{Message: "m", Data: event.StepStart{Step: 1}})
	tell(event.Event{Message: "m", Data: event.ModelRequest{Step: 1, Messages: 1}})
	return tell
}

// makesCall has a run make a call that begins to run.
func makesCall(tell func(event.Event), tool, args string, used message.Usage) {
	tell(event.Event{Message: "m", Part: "p1", Call: "c1", Data: event.ToolInputStart{Tool: tool}})
	tell(event.Event{Message: "m", Part: "p1", Call: "c1", Data: event.ToolInputEnd{Tool: tool, Raw: args, Input: []byte(args)}})
	tell(event.Event{Message: "m", Data: event.ModelResponse{Model: message.ModelRef{Name: "fast"}, Finish: message.FinishToolCalls, Tokens: used, Cost: new(message.Cost(2_000_000_000))}})
	tell(event.Event{Message: "m", Call: "c1", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Allow, Rule: "default"}}})
	tell(event.Event{Message: "m", Call: "c1", Data: event.ToolCall{Tool: tool, Args: []byte(args)}})
}

// TestTheStatusShowsTheTreeOfRuns: while a call runs, a terminal shows its time, the runs
// below it as a tree, and what is used of the limits; nothing of it stays.
func TestTheStatusShowsTheTreeOfRuns(t *testing.T) {
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b drawn
				s := &Screen{w: &b, TTY: true, Live: true, columns: func() int { return columns }}
				r := newTextRun(&Screen{w: &drawn{}, TTY: true}, s, RunOptions{})
				tell := asking(r, "fast")
				r.run.Started.Limits = &event.Limits{MaxSteps: 50, MaxTokens: 100_000, MaxCost: 500_000_000_000, TimeoutMs: 900_000}
				makesCall(tell, "task", `{"agent":"reviewer"}`, message.Usage{Input: 1000, Output: 20})
				upper := subrun(r, "reviewer-aaaaaaaa", event.Parent{Run: r.run.ID, Call: "c1", Root: r.run.ID, Agents: []string{"a"}})
				makesCall(upper, "task", `{"agent":"checker"}`, message.Usage{Input: 300})
				subrun(r, "checker-bbbbbbbb", event.Parent{Run: "reviewer-aaaaaaaa", Call: "c1", Root: r.run.ID, Agents: []string{"a", "reviewer"}})
				lower := subrun(r, "linter-cccccccc", event.Parent{Run: r.run.ID, Call: "c1", Root: r.run.ID, Agents: []string{"a"}})
				makesCall(lower, "bash", `{"command":"go vet ./..."}`, message.Usage{Input: 7})
				b.Reset()
				time.Sleep(61 * time.Second)
				synctest.Wait()
				shots := strings.Split(b.String(), "\r\x1b[3A\x1b[J")
				if len(shots) != 62 {
					t.Fatalf("drawn %d times in 61 s", len(shots)-1)
				}
				lines := strings.Split(shots[61], "\n")
				want := map[int][]string{40: {
					"  task running 1m01s  {… · step 1/50 ·…",
					"  ├ linter-cccccc · step 1 · 7 tokens …",
					"  └ reviewer-aaaaaa · step 1 · 300 tok…",
					"    └ checker-bbbbbb · step 1 · model …",
				}, 80: {
					"  task running 1m01s  {… · step 1/50 · 1,327/100,000 tokens · $0.006/$0.50 · 1…",
					"  ├ linter-cccccc · step 1 · 7 tokens · bash running  go vet ./...",
					"  └ reviewer-aaaaaa · step 1 · 300 tokens · task running  {\"agent\":\"checker\"}",
					"    └ checker-bbbbbb · step 1 · model fast",
				}, 200: {
					`  task running 1m01s  {"agent":"reviewer"} · step 1/50 · 1,327/100,000 tokens · $0.006/$0.50 · 1m01s/15m00s`,
					"  ├ linter-cccccc · step 1 · 7 tokens · bash running  go vet ./...",
					"  └ reviewer-aaaaaa · step 1 · 300 tokens · task running  {\"agent\":\"checker\"}",
					"    └ checker-bbbbbb · step 1 · model fast",
				}}[columns]
				if !slices.Equal(lines, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
				}
				for _, line := range lines {
					if ansi.StringWidth(line) >= columns {
						t.Errorf("%d cells: %q", ansi.StringWidth(line), line)
					}
				}
				b.Reset()
				tell(event.Event{Message: "m", Call: "c1", Data: event.ToolResult{ToolResult: message.ToolResult{Output: "fine"}}})
				if !strings.HasPrefix(b.String(), "\r\x1b[3A\x1b[J") {
					t.Errorf("the status was not taken back: %q", b.String())
				}
				ended(r)
				b.Reset()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if b.String() != "" {
					t.Errorf("drawn after the end: %q", b.String())
				}
			})
		})
	}
}
