package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// smallModel holds so many bytes and refuses more; it answers asides from a list
// of its own.
type smallModel struct {
	model
	holds     int64
	summaries []answer
	asides    []message.Aside
	refused   int
}

var errTooLong = reason.New(reason.ContextExhausted, "400: context_length_exceeded").WithHint("shorten it")

func (m *smallModel) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if req.Aside == nil {
		if m.holds > 0 && sizes(m.w.appended) > m.holds {
			m.refused++
			return nil, errTooLong
		}
		return m.model.Next(ctx, req, emit)
	}
	m.asides = append(m.asides, *req.Aside)
	m.w.note("summary")
	if m.holds > 0 && int64(len(req.Aside.System)+len(req.Aside.Text)) > m.holds || len(m.summaries) == 0 {
		return nil, errTooLong
	}
	a := m.summaries[0]
	m.summaries = m.summaries[1:]
	for _, d := range a.emit {
		if err := emit(d); err != nil {
			return nil, err
		}
	}
	out := a.out
	return &out, a.err
}

// longRun is a run of so many calls, each with a result of so many bytes. The
// numbers in them distinguish the steps.
func longRun(t *testing.T, n, bytes int, summaries ...answer) (*world, *smallModel) {
	t.Helper()
	var answers []answer
	for i := range n {
		a := calls(fmt.Sprintf(`a {"n":%d}`, i))
		a.out.Calls[0].ID = fmt.Sprintf("call%d", i)
		a.out.Text = fmt.Sprintf("step %d", i)
		answers = append(answers, a)
	}
	w := newWorld(t, append(answers, say("done"))...)
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		text := fmt.Sprintf("%s %s ", c.ID, c.Args) + strings.Repeat(".", bytes)
		return &message.ToolResult{Text: text, Output: text}, nil
	}
	return w, &smallModel{model: model{w}, summaries: summaries}
}

// shortened returns the events about a shorter conversation, in order.
func (w *world) shortened() (types []string) {
	for _, e := range w.events {
		switch d := e.Data.(type) {
		case event.ContextPrune, event.ContextCompaction:
			types = append(types, string(e.Type()))
		case event.ModelRequest:
			if d.Summary {
				types = append(types, "summary.request")
			}
		}
	}
	return types
}

// replaced counts the events that changed the conversation.
func (w *world) replaced() (n int) {
	for _, e := range w.events {
		d, ok := e.Data.(event.ContextCompaction)
		if e.Type() == event.TypeContextPrune || ok && d.Summary != "" {
			n++
		}
	}
	return n
}

func compaction(t *testing.T, w *world) (event.Event, event.ContextCompaction) {
	t.Helper()
	for _, e := range w.events {
		if d, ok := e.Data.(event.ContextCompaction); ok {
			return e, d
		}
	}
	t.Fatal("there is no compaction")
	return event.Event{}, event.ContextCompaction{}
}

const notes = "## Objective\ndo it\n## Progress\nsome steps are done"

func TestConversationIsShortened(t *testing.T) {
	summary := say(notes)
	for name, c := range map[string]struct {
		reason    string
		steps     int
		bytes     int
		holds     int64
		context   Context
		summaries []answer
		want      []string
		end       reason.Reason
		says      string
	}{
		"short": {
			"there is room", 3, 100, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 500, Prune: true},
			[]answer{summary},
			nil, reason.Completed, "",
		},
		"unknown window": {
			"nobody knows that there is no room", 20, 4000, 0,
			Context{AtPercent: 80, KeepRecent: 500, Prune: true},
			[]answer{summary},
			nil, reason.Completed, "",
		},
		"summary": {
			"a summary replaces the older steps", 10, 4000, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000, Prune: true},
			[]answer{summary, summary},
			[]string{"summary.request", "context.compaction"},
			reason.Completed, "",
		},
		"reserve": {
			"the answer needs room, too", 6, 4000, 0,
			Context{Window: 10_000, AtPercent: 100, KeepRecent: 2000},
			[]answer{summary, summary},
			[]string{"summary.request", "context.compaction"},
			reason.Completed, "",
		},
		"prune": {
			"old output is enough", 9, 40_000, 0,
			Context{Window: 80_000, AtPercent: 80, KeepRecent: 15_000, Prune: true},
			nil,
			[]string{"context.prune"},
			reason.Completed, "",
		},
		"no prune": {
			"an agent may forbid it", 9, 40_000, 0,
			Context{Window: 80_000, AtPercent: 80, KeepRecent: 15_000},
			[]answer{summary},
			[]string{"summary.request", "context.compaction"},
			reason.Completed, "",
		},
		"overflow": {
			"the provider refuses, and takes the shorter conversation", 8, 4000, 30_000,
			Context{AtPercent: 80, KeepRecent: 3000, Prune: true},
			[]answer{summary},
			[]string{"summary.request", "context.compaction"},
			reason.Completed, "",
		},
		"overflow, off": {
			"off is off, also then", 8, 4000, 30_000,
			Context{KeepRecent: 3000, Prune: true},
			[]answer{summary},
			nil, reason.ContextExhausted, "spec.context.compactAtPercent of the agent is 0",
		},
		"off": {
			"off is off", 8, 4000, 0,
			Context{Window: 100, KeepRecent: 3000, Prune: true},
			[]answer{summary},
			nil, reason.Completed, "",
		},
		"no gain": {
			"a summary as long as what it replaces", 10, 4000, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000},
			[]answer{say(strings.Repeat("words ", 5000))},
			[]string{"summary.request", "context.compaction"},
			reason.ContextExhausted, "by a fifth",
		},
		"summary refused": {
			"neither the record nor half of it fits", 8, 4000, 1500,
			Context{AtPercent: 80, KeepRecent: 3000},
			[]answer{summary},
			[]string{"summary.request", "summary.request"},
			reason.ContextExhausted, "no summary",
		},
		"empty": {
			"no summary, and none of half of it", 10, 4000, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000},
			[]answer{say(" \n"), say("")},
			[]string{"summary.request", "context.compaction", "summary.request", "context.compaction"},
			reason.ContextExhausted, "no summary",
		},
		"empty once": {
			"the second try brings one", 10, 4000, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000},
			[]answer{say(""), summary},
			[]string{"summary.request", "context.compaction", "summary.request", "context.compaction"},
			reason.Completed, "",
		},
		"summary fails": {
			"an error of the provider is the run's", 10, 4000, 0,
			Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000},
			[]answer{{err: reason.New(reason.ProviderUnavailable, "503")}},
			[]string{"summary.request"},
			reason.ProviderUnavailable, "503",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := longRun(t, c.steps, c.bytes, c.summaries...)
			m.holds = c.holds
			end := w.start(t.Context(), func(cfg *Config) {
				cfg.Model, cfg.Context = m, c.context
				if name == "reserve" {
					cfg.Context.ReserveOutput = 4500
				}
			})
			if end.Reason != c.end || !strings.Contains(end.Message, c.says) {
				t.Errorf("%s: ended %s (%s), want %s (%s)", c.reason, end.Reason, end.Message, c.end, c.says)
			}
			if end.Reason == reason.ContextExhausted && !strings.Contains(end.Hint, "spec.context") {
				t.Errorf("the hint %q names no field", end.Hint)
			}
			if end.Reason == reason.Completed && end.Output != "done" {
				t.Errorf("the answer is %q", end.Output)
			}
			if got := w.shortened(); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.reason, got, c.want)
			}
			if resets := w.replaced(); w.resets != resets {
				t.Errorf("the model began anew %d times, want %d", w.resets, resets)
			}
		})
	}
}

func count(list []string, word string) (n int) {
	for _, s := range list {
		if s == word {
			n++
		}
	}
	return n
}

func TestWhatStaysOfAConversation(t *testing.T) {
	w, m := longRun(t, 7, 4000, say(notes))
	w.answers = w.answers[:7]
	end := w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 10_000, AtPercent: 70, KeepRecent: 2100, PromptBytes: 400}
	})
	if end.Reason != reason.NoFinalAnswer || end.Output != "step 6" {
		t.Errorf("ended %s with %q: the notes are nobody's answer", end.Reason, end.Output)
	}
	e, d := compaction(t, w)
	if !d.Auto || d.Overflow || d.Summary != notes || d.After >= d.Before || e.Message == "" || e.Part == "" {
		t.Errorf("compaction %+v of %+v", d, e)
	}
	var got []string
	for _, m := range w.appended {
		got = append(got, fmt.Sprintf("%s %q %d", m.Role, m.Text()[:min(20, len(m.Text()))], len(m.Calls())))
		for _, c := range m.Calls() {
			if c.Result == nil {
				t.Errorf("call %s has no result", c.CallID)
			}
		}
	}
	want := []string{`user "do it" 0`, `user "Summary of the conve" 0`, `assistant "step 5" 1`, `assistant "step 6" 1`}
	if len(got) > len(want) { // the empty answers at the end
		got = got[:len(want)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	if d.TailStart != w.appended[2].ID {
		t.Errorf("the tail begins at %s, the event says %s", w.appended[2].ID, d.TailStart)
	}
}

func TestSummaryIsAskedForBesideTheConversation(t *testing.T) {
	s := say("  " + notes + "\n")
	s.emit = []message.Delta{
		{Kind: message.DeltaText, Text: "half"},
		{Kind: message.DeltaRetry, Retry: &message.Retry{Attempt: 1, Attempts: 5, Class: "429"}},
		{Kind: message.DeltaText, Text: notes},
	}
	s.out.Usage, s.out.Model = message.Usage{Input: 1000, Output: 100}, message.ModelRef{Name: "cheap"}
	w, m := longRun(t, 8, 4000)
	other := &smallModel{model: model{w}, summaries: []answer{s}}
	var v *view.Run
	end := w.start(t.Context(), func(c *Config) {
		c.Model, v = m, c.View
		c.Context = Context{
			Window: 10_000, AtPercent: 80, KeepRecent: 2000,
			Summarizer: other, SummarizerRef: message.ModelRef{Name: "cheap"}, SummarizerWindow: 4000,
		}
		c.Limits.Price = func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
			if by.Name == "cheap" {
				return message.Cost(u.Total()), true
			}
			return 0, true
		}
	})
	if end.Reason != reason.Completed || len(m.asides) != 0 || len(other.asides) != 1 {
		t.Fatalf("ended %s (%s), asked %d and %d times", end.Reason, end.Message, len(m.asides), len(other.asides))
	}
	aside := other.asides[0]
	if aside.MaxOutputTokens != 1000 || !strings.Contains(aside.System, "## Open questions") {
		t.Errorf("aside %+v", aside)
	}
	if n := len(aside.System) + len(aside.Text); n > 4*4000 {
		t.Errorf("%d bytes for a window of 4000 tokens", n)
	}
	_, d := compaction(t, w)
	if d.Summary != notes || d.Model.Name != "cheap" || d.Cost == nil || *d.Cost != 1100 || d.DurationMs <= 0 {
		t.Errorf("compaction %+v", d)
	}
	if v.Tokens.Total() != 1100 || v.Cost != 1100 || v.Steps != 9 {
		t.Errorf("%d tokens, cost %s, %d steps: the summary counts, and is no step", v.Tokens.Total(), v.Cost, v.Steps)
	}
	if got := w.types(); count(got, "model.retry") != 1 || slices.ContainsFunc(w.events, func(e event.Event) bool {
		d, ok := e.Data.(event.TextDelta)
		return ok && d.Text == "half"
	}) {
		t.Errorf("events %v: a retry is told, what is written is not", got)
	}
}

func TestBudgetIsCheckedBeforeASummary(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		limits Limits
	}{
		"tokens": {"the worst case of the summary", Limits{MaxTokens: 7500, MaxSteps: 50}},
		"money": {"its price is that of the model which writes it", Limits{MaxSteps: 50, MaxCost: 100, Price: func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
			if by.Name == "dear" {
				return message.Cost(u.Total()), true
			}
			return 0, true
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := longRun(t, 8, 4000, say(notes))
			end := w.start(t.Context(), func(cfg *Config) {
				cfg.Model, cfg.Limits = m, c.limits
				cfg.Context = Context{
					Window: 10_000, AtPercent: 80, KeepRecent: 2000,
					Summarizer: m, SummarizerRef: message.ModelRef{Name: "dear"}, SummarizerWindow: 100_000,
				}
			})
			if end.Reason != reason.BudgetExceeded || !strings.Contains(end.Hint, "spec.limits.") || len(m.asides) != 0 {
				t.Errorf("%s: ended %s (%s) after %d summaries", c.reason, end.Reason, end.Message, len(m.asides))
			}
		})
	}
}

// A conversation that is refused again right after it was shortened ends the
// run: it is not shortened again and again.
func TestSecondRefusalInARowEndsTheRun(t *testing.T) {
	w, m := longRun(t, 8, 4000, say(notes), say(notes))
	m.holds = 30_000
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		return &message.ToolResult{Text: strings.Repeat(".", 4000)}, nil
	}
	stubborn := refusing{m}
	end := w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = stubborn, Context{AtPercent: 80, KeepRecent: 3000}
	})
	if end.Reason != reason.ContextExhausted || !strings.Contains(end.Message, "just shortened") || len(m.asides) != 1 || m.refused != 2 {
		t.Errorf("ended %s (%s) after %d summaries and %d refusals", end.Reason, end.Message, len(m.asides), m.refused)
	}
}

// refusing refuses everything once it has refused something.
type refusing struct{ *smallModel }

func (r refusing) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if req.Aside == nil && r.refused > 0 {
		r.refused++
		return nil, errTooLong
	}
	return r.smallModel.Next(ctx, req, emit)
}

// What a run remembers after a compaction is what its journal says.
func TestResumedRunStaysShortened(t *testing.T) {
	w, m := longRun(t, 8, 4000, say(notes))
	settings := Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000, PromptBytes: 100}
	w.start(t.Context(), func(c *Config) { c.Model, c.Context = m, settings })
	whole := append([]event.Event(nil), w.events...)
	at := slices.IndexFunc(whole, func(e event.Event) bool { return e.Type() == event.TypeContextCompaction })
	for _, end := range []int{at, at + 1, at + 2, at + 3, len(whole)} {
		again, m := longRun(t, 0, 4000, say(notes))
		again.events = append([]event.Event(nil), whole[:end]...)
		cfg := again.config()
		cfg.View = &view.Run{}
		again.events = again.events[:end]
		for _, e := range again.events {
			if err := cfg.View.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		cfg.NewID = func() func(string) string { // not those of the first process
			n := 1000
			return func(kind string) string { n++; return fmt.Sprint(kind, n) }
		}()
		cfg.Model, cfg.Context = m, settings
		got, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reason != reason.Completed {
			t.Errorf("cut at %d: ended %s (%s)", end, got.Reason, got.Message)
		}
		if n := count(again.shortened(), "context.compaction"); n != 1 {
			t.Errorf("cut at %d: %d compactions", end, n)
		}
		if len(again.appended) < 3 || again.appended[0].Text() != "do it" || !again.appended[1].Summary {
			t.Errorf("cut at %d: the model was told %d messages", end, len(again.appended))
		}
	}
}

// However long the steps are: a call and its result are never parted, the task
// stays, and the estimate is what a recount of the conversation gives.
func TestShorteningKeepsTheConversationWhole(t *testing.T) {
	for seed := range 40 {
		w, m := longRun(t, 30, 0)
		for range 30 {
			m.summaries = append(m.summaries, say(notes))
		}
		w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			n := (seed*7919 + len(c.Args)*31 + w.resets*17 + len(w.events)*101) % 9000
			return &message.ToolResult{Text: c.ID + strings.Repeat("x", n)}, nil
		}
		check := checking{m, t}
		var l *loop
		cfg := w.config()
		cfg.Model, cfg.Context = check, Context{Window: 12_000, AtPercent: 80, KeepRecent: int64(seed * 200), Prune: seed%2 == 0, PromptBytes: 1000}
		ctx, cancel := context.WithCancelCause(t.Context())
		l = &loop{Config: cfg, cancel: cancel, guard: guard{Guard: cfg.Guard}}
		end, err := l.live(ctx)
		l.settle()
		cancel(nil)
		if err != nil || end.Reason != reason.Completed {
			t.Fatalf("seed %d: ended %s (%s), error %v", seed, end.Reason, end.Message, err)
		}
		if len(m.asides) == 0 {
			t.Errorf("seed %d: nothing was shortened", seed)
		}
		if got, want := l.estimate.bytes, cfg.Context.PromptBytes+sizes(w.appended); got != want {
			t.Errorf("seed %d: %d bytes are estimated, %d are there", seed, got, want)
		}
	}
}

type checking struct {
	*smallModel
	t *testing.T
}

func (c checking) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if req.Aside != nil {
		return c.smallModel.Next(ctx, req, emit)
	}
	if c.w.appended[0].Text() != "do it" {
		c.t.Error("the task is gone")
	}
	for _, m := range c.w.appended {
		for _, call := range m.Calls() {
			if call.Result == nil {
				c.t.Errorf("call %s has no result", call.CallID)
			}
		}
	}
	if n := (1000 + sizes(c.w.appended)) / bytesPerToken; n > 12_000 {
		c.t.Errorf("a request of %d tokens", n)
	}
	return c.smallModel.Next(ctx, req, emit)
}

func TestShorteningThatCannotBeWrittenDownEndsTheRun(t *testing.T) {
	for name, steps := range map[string]int{"prune": 40_000, "summary": 4000} {
		t.Run(name, func(t *testing.T) {
			w, m := longRun(t, 9, steps, say(notes))
			s := m.summaries[0]
			s.err = errDisk
			m.summaries[0] = s
			cfg := w.config()
			cfg.Model, cfg.Context = m, Context{Window: int64(2 * steps), AtPercent: 80, Prune: true, KeepRecent: 2000}
			cfg.Journal = noBlobs{journal{w}}
			end, err := Run(t.Context(), cfg)
			if err != nil || end.Reason != reason.Internal || !strings.Contains(end.Message, "disk full") {
				t.Errorf("ended %+v, error %v", end, err)
			}
		})
	}
}

type noBlobs struct{ journal }

func (noBlobs) PutBlob([]byte) (string, error) { return "", errDisk }

func TestNothingToDropIsSentAsItIs(t *testing.T) {
	w, m := longRun(t, 0, 0)
	end := w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 1000, AtPercent: 50, PromptBytes: 3000}
	})
	if end.Reason != reason.Completed || len(m.asides) != 0 {
		t.Errorf("ended %s (%s): the instructions fill half of the window, and that is all there is", end.Reason, end.Message)
	}
	w, m = longRun(t, 0, 0)
	end = w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 1000, AtPercent: 50, PromptBytes: 8000}
	})
	if end.Reason != reason.ContextExhausted || len(w.requests) != 0 {
		t.Errorf("ended %s after %d requests: the instructions do not fit", end.Reason, len(w.requests))
	}
}

func TestCancelledSummaryIsNoOverflow(t *testing.T) {
	w, m := longRun(t, 8, 4000)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cfg := w.config()
	cfg.Model, cfg.Context = cancelling{m, cancel}, Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000}
	end, err := Run(ctx, cfg)
	if err != nil || end.Reason != reason.Cancelled || len(m.asides) != 1 {
		t.Errorf("ended %+v after %d summaries, error %v", end, len(m.asides), err)
	}
}

type cancelling struct {
	*smallModel
	cancel context.CancelCauseFunc
}

func (c cancelling) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if req.Aside == nil {
		return c.smallModel.Next(ctx, req, emit)
	}
	c.asides = append(c.asides, *req.Aside)
	c.cancel(reason.New(reason.Cancelled, "stopped by SIGINT"))
	return nil, errors.Join(ctx.Err(), errTooLong)
}

// heavyRun is a run whose last results are long.
func heavyRun(t *testing.T) (*world, *smallModel) {
	t.Helper()
	s := say(notes)
	s.out.Model, s.out.Usage = message.ModelRef{Name: "m", Provider: "scripted"}, message.Usage{Input: 900, Output: 90}
	w, m := longRun(t, 8, 0, s)
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		n := 40_000
		if c.ID == "call5" || c.ID == "call6" {
			n = 120_000
		}
		r := &message.ToolResult{Text: strings.Repeat("x", n)}
		if c.ID == "call1" {
			r.Blob = "sha256:whole"
		}
		return r, nil
	}
	return w, m
}

// The newest output stays whatever it is; when that alone is too much, a summary
// follows.
func TestPruningThatIsNotEnough(t *testing.T) {
	w, m := heavyRun(t)
	end := w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 100_000, AtPercent: 60, KeepRecent: 35_000, Prune: true}
	})
	want := []string{"context.prune", "summary.request", "context.compaction"}
	if got := w.shortened(); end.Reason != reason.Completed || !slices.Equal(got, want) {
		t.Fatalf("ended %s (%s) after %v", end.Reason, end.Message, got)
	}
	var d event.ContextPrune
	for _, e := range w.events {
		if p, ok := e.Data.(event.ContextPrune); ok {
			d = p
		}
	}
	var got []string
	for _, c := range d.Calls {
		got = append(got, c.Call)
		if c.Call == "call1" && c.Blob != "sha256:whole" || c.Blob == "" {
			t.Errorf("the output of %s is kept as %q", c.Call, c.Blob)
		}
	}
	if diff := cmp.Diff([]string{"call0", "call1", "call2", "call3"}, got); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
	if d.Before-d.After < 39_000 || d.Before-d.After > 40_000 {
		t.Errorf("%d tokens before and %d after: 40,000 went", d.Before, d.After)
	}
}

func TestWhatIsNeverPruned(t *testing.T) {
	w := newWorld(t)
	l := &loop{Config: w.config()}
	var history []*message.Message
	for i, c := range []message.ToolPart{
		{Tool: "read", State: message.StateCompleted},
		{Tool: "skill", State: message.StateCompleted},
		{Tool: "read", State: message.StateError},
		{Tool: "read", State: message.StateCompleted, Compacted: 1},
		{Tool: "read", State: message.StatePending},
		{Tool: "bash", State: message.StateCompleted},
		{Tool: "read", State: message.StateCompleted},
		{Tool: "read", State: message.StateCompleted},
		{Tool: "read", State: message.StateCompleted},
	} {
		c.CallID = fmt.Sprint(i)
		if c.State != message.StatePending {
			c.Result = &message.ToolResult{Text: strings.Repeat("x", 90_000)}
		}
		history = append(history, &message.Message{Role: message.RoleAssistant, Parts: []message.Part{{Type: message.PartTool, Tool: &c}}})
		history = append(history, &message.Message{Role: message.RoleUser})
	}
	calls, freed := l.prunable(history)
	var got []string
	for _, c := range calls {
		got = append(got, c.CallID)
	}
	// 7 and 8 are the newest steps; 6 is beyond the newest 40,000 tokens already.
	if diff := cmp.Diff([]string{"0", "5", "6"}, got); diff != "" {
		t.Errorf("prunable (-want +got):\n%s", diff)
	}
	if freed != 3*(90_000-markerLength) {
		t.Errorf("%d bytes are freed", freed)
	}
}

// The events of a conversation that is shortened, byte for byte.
func TestShorteningIsTold(t *testing.T) {
	w, m := heavyRun(t)
	w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 100_000, AtPercent: 60, KeepRecent: 35_000, Prune: true}
		c.Limits.Price = func(_ message.ModelRef, u message.Usage) (message.Cost, bool) {
			return message.Cost(u.Total()) * 1_000_000, true
		}
		fixTime(c)
	})
	var got strings.Builder
	for _, e := range w.events {
		d, ok := e.Data.(event.ModelRequest)
		if e.Type() != event.TypeContextPrune && e.Type() != event.TypeContextCompaction && (!ok || !d.Summary) {
			continue
		}
		line, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(line, '\n'))
	}
	golden := filepath.Join("testdata", "shortened.jsonl")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("events (-want +got), go test -update writes them anew:\n%s", diff)
	}
}

func TestWhereAConversationIsCut(t *testing.T) {
	open := assistant(message.Part{Type: message.PartTool, Tool: &message.ToolPart{CallID: "open", Tool: "t", State: message.StateRunning}})
	step := func(bytes int) *message.Message { return assistant(call1("t", "{}", strings.Repeat("x", bytes), "")) }
	summary := &message.Message{Role: message.RoleAssistant, Summary: true, Time: message.Time{Completed: 1}, Parts: []message.Part{
		{Type: message.PartCompaction, Compaction: &message.Compaction{}}, {Type: message.PartText, Text: "notes"},
	}}
	for name, c := range map[string]struct {
		reason   string
		context  Context
		overflow bool
		messages []*message.Message
		tail     string
		dropped  int
	}{
		"recent":      {"whole steps as far as they go", Context{Window: 9000, AtPercent: 80, KeepRecent: 600}, false, []*message.Message{step(1000), step(1000), step(1000)}, "2", 1},
		"newest":      {"the newest in any case: the model has not read it", Context{Window: 9000, AtPercent: 80}, false, []*message.Message{step(1000), step(1000)}, "2", 1},
		"too long":    {"unless it alone fills the window", Context{Window: 1000, AtPercent: 80, KeepRecent: 600}, false, []*message.Message{step(100), step(5000)}, "", 2},
		"refused":     {"or half of what was refused", Context{AtPercent: 80, KeepRecent: 600}, true, []*message.Message{step(100), step(5000)}, "", 2},
		"correction":  {"what was said about an answer stays with it", Context{Window: 9000, AtPercent: 80}, false, []*message.Message{step(100), step(100), user("again, as JSON"), user("please")}, "2", 1},
		"words first": {"words before the first answer are a step, too", Context{Window: 9000, AtPercent: 80}, false, []*message.Message{user("hurry"), user("please")}, "1", 0},
		"open":        {"a call without a result, and all behind it", Context{Window: 9000, AtPercent: 80}, false, []*message.Message{step(100), open, step(100), step(100)}, "2", 1},
		"second":      {"a second time the notes go, too", Context{Window: 9000, AtPercent: 80}, false, []*message.Message{step(100), step(100), summary, step(100), step(100)}, "5", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := &loop{Config: w.config()}
			l.Context = c.context
			for i, m := range c.messages {
				m.ID, m.Time.Completed = fmt.Sprint(i+1), 1
				l.View.Messages = append(l.View.Messages, m)
			}
			l.estimate.bytes = sizes(l.View.History())
			got := l.cut(c.overflow)
			if got.first.Text() != "do it" || got.tailStart() != c.tail || len(got.drop) != c.dropped || (got.earlier != nil) != (name == "second") {
				t.Errorf("%s: the tail begins at %q, %d are dropped; want %q and %d", c.reason, got.tailStart(), len(got.drop), c.tail, c.dropped)
			}
		})
	}
}

func TestSmallModelsWriteShortNotes(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		context Context
		bytes   int64
		want    int64
	}{
		"large":      {"never more than 4,096", Context{Window: 200_000}, 1000, summaryTokens},
		"small":      {"a quarter of the window", Context{Window: 8000}, 1000, 2000},
		"unknown":    {"a quarter of what was refused", Context{}, 20_000, 1250},
		"other":      {"the window of the model that writes them", Context{Window: 200_000, Summarizer: model{}, SummarizerWindow: 4000}, 1000, 1000},
		"other, any": {"which is taken to be the same where it is not known", Context{Window: 8000, Summarizer: model{}}, 1000, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loop{Config: Config{Context: c.context}, estimate: estimate{bytes: c.bytes}}
			if got := l.notes(); got != c.want {
				t.Errorf("%s: %d tokens, want %d", c.reason, got, c.want)
			}
		})
	}
}

// A summary may forget an entry of the list; the list itself may not.
func TestTheTodoListOutlastsASummary(t *testing.T) {
	list := message.Todos{{Content: "parse", Status: message.TodoCompleted}, {Content: "write the tests", Status: message.TodoInProgress, Priority: "high"}}
	for name, c := range map[string]struct {
		reason  string
		written int // the call that writes the list
		want    message.Todos
	}{
		"dropped": {"the call is in what the summary replaces", 1, list},
		"kept":    {"the call stays word for word", 7, nil},
	} {
		w, m := longRun(t, 8, 4000, say(notes))
		run := w.run
		w.run = func(ctx context.Context, call message.ToolCall) (*message.ToolResult, error) {
			r, err := run(ctx, call)
			if call.ID == fmt.Sprint("call", c.written) {
				r.Todos = list
			}
			return r, err
		}
		var v *view.Run
		w.start(t.Context(), func(cfg *Config) {
			cfg.Model, v, cfg.Context = m, cfg.View, Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000, PromptBytes: 100}
		})
		_, d := compaction(t, w)
		if diff := cmp.Diff(c.want, d.Todos); diff != "" {
			t.Errorf("%s (%s), pinned (-want +got):\n%s", name, c.reason, diff)
		}
		summary := w.appended[1].Text()
		if got := strings.Contains(summary, "The todo list, as it is now:\n1. [completed] parse\n2. [in_progress] write the tests (high)"); got != (c.want != nil) {
			t.Errorf("%s (%s): the model reads %q", name, c.reason, summary)
		}
		if diff := cmp.Diff(list, v.Todos); diff != "" {
			t.Errorf("%s: the run has (-want +got):\n%s", name, diff)
		}
	}
}
