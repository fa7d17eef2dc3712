package modeltest_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

// mutant is a conversation with one mistake.
type mutant struct {
	model.Conversation
	// append, emit and answer change what goes through; nil changes nothing.
	append func(*message.Message) *message.Message
	emit   func(message.Delta) (message.Delta, bool)
	answer func(*message.Output, error) (*message.Output, error)
	reset  func([]*message.Message) []*message.Message
	ask    func(message.Request) message.Request
}

func (m mutant) Append(msg *message.Message) error {
	if m.append != nil {
		msg = m.append(msg)
	}
	return m.Conversation.Append(msg)
}

func (m mutant) Reset(history []*message.Message) error {
	if m.reset != nil {
		history = m.reset(history)
	}
	return m.Conversation.Reset(history)
}

func (m mutant) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if m.ask != nil {
		req = m.ask(req)
	}
	out, err := m.Conversation.Next(ctx, req, func(d message.Delta) error {
		ok := true
		if m.emit != nil {
			d, ok = m.emit(d)
		}
		if !ok {
			return nil
		}
		return emit(d)
	})
	if m.answer != nil {
		return m.answer(out, err)
	}
	return out, err
}

// withParts is a message whose parts were changed.
func withParts(m *message.Message, change func(*message.Part)) *message.Message {
	other := *m
	other.Parts = slices.Clone(m.Parts)
	for i := range other.Parts {
		change(&other.Parts[i])
	}
	return &other
}

func changed(f func(*message.Output)) func(*message.Output, error) (*message.Output, error) {
	return func(out *message.Output, err error) (*message.Output, error) {
		if out != nil {
			f(out)
		}
		return out, err
	}
}

// mutants are mistakes, by the test that has to notice them.
var mutants = map[string]mutant{
	"Answer/calls lost":                         {answer: changed(func(o *message.Output) { o.Calls = nil })},
	"Answer/pieces lost":                        {emit: func(d message.Delta) (message.Delta, bool) { return d, d.Kind != message.DeltaText }},
	"Answer/names lost":                         {emit: func(d message.Delta) (message.Delta, bool) { d.Tool = ""; return d, true }},
	"Answer/nothing at all":                     {answer: func(*message.Output, error) (*message.Output, error) { return nil, nil }},
	"FinishWordsAreMapped/everything is a stop": {answer: changed(func(o *message.Output) { o.Finish = message.FinishStop })},
	"UsageIsCounted/cache counted twice":        {answer: changed(func(o *message.Output) { o.Usage.Input += o.Usage.CacheRead })},
	"ReasoningGoesBackToTheSameModelOnly/metadata lost": {append: func(m *message.Message) *message.Message {
		return withParts(m, func(p *message.Part) { p.Metadata = nil })
	}},
	"ReasoningGoesBackToTheSameModelOnly/text changed": {append: func(m *message.Message) *message.Message {
		return withParts(m, func(p *message.Part) { p.Text = strings.ToUpper(p.Text) })
	}},
	"ReasoningGoesBackToTheSameModelOnly/sent to all": {reset: func(history []*message.Message) []*message.Message {
		history = slices.Clone(history)
		for i, m := range history {
			if m.Model != nil {
				own := *m
				own.Model = &message.ModelRef{Provider: "anthropic", Model: "test-model"}
				history[i] = &own
			}
		}
		return history
	}},
	"HistoryOnlyGrows/results lost": {append: func(m *message.Message) *message.Message {
		return withParts(m, func(p *message.Part) {
			if p.Tool != nil {
				tool := *p.Tool
				tool.Result, p.Tool = nil, &tool
			}
		})
	}},
	"MediaAreShown/file lost": {append: func(m *message.Message) *message.Message {
		return withParts(m, func(p *message.Part) {
			if p.File != nil {
				p.Type, p.File = message.PartText, nil
			}
		})
	}},
	"ClosingRequestHasNoTools/tools kept":     {ask: func(r message.Request) message.Request { r.NoTools = false; return r }},
	"AsideLeavesTheConversationAsItIs/not so": {ask: func(r message.Request) message.Request { r.Aside = nil; return r }},
	"ResetReplacesTheHistory/half of it":      {reset: func(h []*message.Message) []*message.Message { return h[len(h)/2:] }},
	"Resets/half of it":                       {reset: func(h []*message.Message) []*message.Message { return h[:len(h)/2+1] }},
	"Resets/in another order": {reset: func(h []*message.Message) []*message.Message {
		h = slices.Clone(h)
		slices.Reverse(h)
		return h
	}},
	"FaultsEndInTheirReason/no reason": {answer: func(o *message.Output, err error) (*message.Output, error) {
		if err != nil {
			err = errors.New(err.Error())
		}
		return o, err
	}},
	"FaultsEndInTheirReason/silent retries": {emit: func(d message.Delta) (message.Delta, bool) { return d, d.Kind != message.DeltaRetry }},
	"EmitErrorEndsTheStream/swallowed": {answer: func(o *message.Output, _ error) (*message.Output, error) {
		if o == nil {
			o = &message.Output{Finish: message.FinishStop}
		}
		return o, nil
	}},
}

const mutantVariable = "MODELTEST_MUTANT"

// The suite is worth something where it notices mistakes. Each one runs in a
// process of its own, because it has to fail.
func TestSuiteNoticesMistakes(t *testing.T) {
	if name := os.Getenv(mutantVariable); name != "" {
		open := func(t testing.TB, s modeltest.Setup) model.Conversation {
			t.Helper()
			m := mutants[name]
			m.Conversation = messages(t, s)
			return m
		}
		modeltest.Talks(t, modeltest.Anthropic, open)
		t.Run("Resets", func(t *testing.T) {
			modeltest.Resets(t, modeltest.Anthropic, func(t testing.TB, transport http.RoundTripper) model.Conversation {
				t.Helper()
				return open(t, modeltest.Setup{Transport: transport, Retry: model.Retry{Attempts: 1}})
			})
		})
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part, _, _ := strings.Cut(name, "/")
			c := exec.CommandContext(t.Context(), self, "-test.run", "^TestSuiteNoticesMistakes$/^"+part+"$") //nolint:gosec // this very test
			c.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestSuiteNoticesMistakes/"+part) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
