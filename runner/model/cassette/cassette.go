// Package cassette answers from a recorded run: only the model is replayed, the rest of the run is real.
package cassette

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/model"
)

// Options are what a conversation does not find in the recording.
type Options struct {
	// Name of the Model object, for errors and answers.
	Name string
}

// answer is one recorded answer.
type answer struct {
	*message.Output
	summary bool
	used    bool
}

// Conversation is a model.Conversation that returns the recorded answers in order,
// whatever the requests are.
//
// An answer is used up when it is complete. A message that is appended without having been
// answered here is an earlier answer of a resumed run, and uses up the answer that was
// given then; the answer of another model uses up none.
type Conversation struct {
	name, file string
	answers    []answer
	// answered: the latest answer has not been appended yet; aside: the same for an answer
	// to a question outside the conversation.
	answered, aside bool
}

// New begins a conversation that is answered from the cassette at path.
func New(path string, o Options) (*Conversation, error) {
	recorded, err := cassette.Open(path)
	if err != nil {
		if _, damaged := errors.AsType[*cassette.DamageError](err); damaged {
			return nil, fmt.Errorf("model %q: %w", o.Name, err)
		}
		return nil, reason.New(reason.ReplayDiverged, "model %q: spec.cassette.path: %w", o.Name, err).
			WithHint("agentctl run --record FILE records a cassette")
	}
	return From(recorded, o), nil
}

// From begins a conversation that is answered from a cassette that was read.
func From(recorded *cassette.Cassette, o Options) *Conversation {
	c := &Conversation{name: o.Name, file: recorded.Name}
	for _, r := range cassette.Requests(recorded.Life()) {
		if r.Output != nil {
			c.answers = append(c.answers, answer{Output: r.Output, summary: r.Summary})
		}
	}
	return c
}

// Append takes note of an answer of an earlier process.
func (c *Conversation) Append(m *message.Message) error {
	switch {
	case m.Role != message.RoleAssistant, m.Error == message.Void, m.Finish == "" && m.Error != "":
	case m.Summary && c.aside:
		c.aside = false
	case !m.Summary && c.answered:
		c.answered = false
	case m.Model != nil && m.Model.Name != c.name:
	default:
		if i := c.pick(m.Summary); i >= 0 {
			c.answers[i].used = true
		}
	}
	return nil
}

// Reset changes nothing: the answers follow from what was asked.
func (c *Conversation) Reset([]*message.Message) error { return nil }

// pick returns the next answer of its kind. A recording without summaries gives
// what it has.
func (c *Conversation) pick(summary bool) int {
	next := func(fits func(answer) bool) int { return slices.IndexFunc(c.answers, fits) }
	i := next(func(a answer) bool { return !a.used && a.summary == summary })
	if i < 0 && summary {
		i = next(func(a answer) bool { return !a.used })
	}
	return i
}

// Next gives the next recorded answer. None left is a ReplayDiverged.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("model %q: %w", c.name, model.Explain(context.Cause(ctx)))
	}
	i := c.pick(req.Aside != nil)
	if i < 0 {
		return nil, reason.New(reason.ReplayDiverged, "model %q: %s holds %d answers, and all are used", c.name, c.file, len(c.answers)).
			WithHint("the run asks for more answers than the recorded one: record it again with the model that answered then")
	}
	a := c.answers[i]
	out := *a.Output
	out.Calls, out.Uncounted = slices.Clone(a.Calls), false
	out.Model.Name = c.name
	model.Silence(req, &out)
	if err := model.Tell(&out, whole, emit); err != nil {
		return nil, fmt.Errorf("model %q: %w", c.name, err)
	}
	c.answers[i].used = true
	if req.Aside != nil {
		c.aside = true
	} else {
		c.answered = true
	}
	return &out, nil
}

// whole is a text in one piece, nothing in none.
func whole(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
