// Package fallback is a conversation that turns to the next model when one is unavailable, and back when its time to cool down has passed.
package fallback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

// DefaultCooldown is how long a model that was unavailable is not asked.
const DefaultCooldown = time.Minute

// Choice is one of the models, in the order in which they are turned to.
type Choice struct {
	// Name of the Model object.
	Name string
	// Open begins a conversation with the model. It is called when the model is
	// first needed, and again later when it failed. Its errors name the model.
	Open func() (model.Conversation, error)
}

// Options say for how long a model is given up. The zero value has the
// documented defaults.
type Options struct {
	// Cooldown is how long a model is not asked after it was unavailable; a
	// server that asks for more is given more. Default: DefaultCooldown.
	Cooldown time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Conversation is a model.Conversation over several models. Each receives the whole
// conversation in its own format, as far as it has not received it yet, and only when it
// is asked.
//
//	a model's Next returns                     the Conversation then
//	output                                     returns it; Output.Model is the model that answered
//	Retryable, Unavailable or Malformed        emits a DeltaRetry that names the next model, and asks that
//	the same, and no model is left             returns ProviderUnavailable with the names of all
//	any other error                            returns it: another model would not help
//
// A fallback that cannot be opened, because it has no key or for any other reason, counts
// as unavailable. So does the first model when this program does not support its provider;
// any other mistake about the first one is an error.
type Conversation struct {
	choices  []*choice
	cooldown time.Duration
	now      func() time.Time

	// log is everything that was ever appended. If resets is not 0, kept replaces the
	// first resetAt messages of it.
	log     []*message.Message
	kept    []*message.Message
	resetAt int
	resets  int
}

// choice is a model, and the part of the conversation that it has received.
type choice struct {
	Choice
	talk   model.Conversation
	sent   int
	resets int

	// until is when the model may be asked again, failure why not before.
	until   time.Time
	failure error
}

// New prepares a conversation over the choices and opens the first. Close must
// be called.
func New(choices []Choice, o Options) (*Conversation, error) {
	if len(choices) == 0 {
		return nil, reason.New(reason.Internal, "a conversation needs a model")
	}
	c := &Conversation{cooldown: o.Cooldown, now: o.Now}
	if c.cooldown <= 0 {
		c.cooldown = DefaultCooldown
	}
	if c.now == nil {
		c.now = time.Now
	}
	for _, k := range choices {
		c.choices = append(c.choices, &choice{Choice: k})
	}
	// A mistake about the first model is reported before anything is asked. A temporary
	// failure shows again when the model is asked, and is reported then.
	if err := c.choices[0].open(); err != nil && reason.Of(err) != reason.ProviderUnavailable {
		return nil, err
	}
	return c, nil
}

func (k *choice) open() error {
	if k.talk != nil {
		return nil
	}
	talk, err := k.Open()
	if err != nil {
		return err
	}
	k.talk, k.sent, k.resets = talk, 0, 0
	return nil
}

// Append keeps a message for the model that will be asked.
func (c *Conversation) Append(m *message.Message) error {
	c.log = append(c.log, m)
	return nil
}

// Reset makes history the whole conversation of every model.
func (c *Conversation) Reset(history []*message.Message) error {
	c.kept, c.resetAt = slices.Clone(history), len(c.log)
	c.resets++
	return nil
}

// catchUp gives a model the part of the conversation that it lacks, including what was said
// before a reset, since a script counts that.
func (c *Conversation) catchUp(k *choice) error {
	if k.resets != c.resets {
		if err := k.append(c.log[:c.resetAt]); err != nil {
			return err
		}
		if err := k.talk.Reset(c.kept); err != nil {
			return err
		}
		k.resets = c.resets
	}
	return k.append(c.log)
}

func (k *choice) append(log []*message.Message) error {
	for k.sent < len(log) {
		if err := k.talk.Append(log[k.sent]); err != nil {
			return err
		}
		k.sent++
	}
	return nil
}

// Next asks the first model that is not cooling down, and the next ones in
// order while they are unavailable.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	last := c.choices[len(c.choices)-1].failure
	for i := c.after(-1); i < len(c.choices); {
		k := c.choices[i]
		a := attempts{emit: emit}
		out, err := c.ask(ctx, k, req, a.watch)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil || a.stopped || !k.unavailable(err, i > 0) {
			return nil, c.inPlace(i, err)
		}
		last, k.failure, k.until = err, err, c.now().Add(c.pause(err))
		if i = c.after(i); i < len(c.choices) {
			if err := emit(message.Delta{Kind: message.DeltaRetry, Retry: a.turn(err, c.choices[i].Name)}); err != nil {
				return nil, err
			}
		}
	}
	return nil, c.exhausted(last)
}

// after returns the place of the first model behind i that may be asked.
func (c *Conversation) after(i int) int {
	now := c.now()
	for i++; i < len(c.choices) && now.Before(c.choices[i].until); i++ {
	}
	return i
}

func (c *Conversation) ask(ctx context.Context, k *choice, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if err := k.open(); err != nil {
		return nil, err
	}
	if err := c.catchUp(k); err != nil {
		return nil, err
	}
	return k.talk.Next(ctx, req, emit)
}

// unavailable reports whether another model may help.
func (k *choice) unavailable(err error, fallback bool) bool {
	if k.talk == nil {
		return fallback || reason.Of(err) == reason.ProviderUnavailable
	}
	e, ok := errors.AsType[*model.Error](err)
	return ok && (e.Kind == model.Retryable || e.Kind == model.Unavailable || e.Kind == model.Malformed)
}

// pause is how long a model is not asked.
func (c *Conversation) pause(err error) time.Duration {
	if e, ok := errors.AsType[*model.Error](err); ok && e.Wait != nil {
		return max(c.cooldown, *e.Wait)
	}
	return c.cooldown
}

// inPlace adds to the final error of a fallback the model that it replaced.
func (c *Conversation) inPlace(i int, err error) error {
	if i == 0 {
		return err
	}
	return fmt.Errorf("in place of %s: %w", names(c.choices[:i]), err)
}

// exhausted is the error when every model is unavailable. The failures before
// the last are in the events.
func (c *Conversation) exhausted(last error) error {
	if len(c.choices) == 1 {
		return model.Explain(last)
	}
	return reason.New(reason.ProviderUnavailable, "%s are unavailable; the last said: %w", names(c.choices), last).WithHint("%s", hint(last))
}

func hint(err error) string {
	if h := reason.Hint(err); h != "" {
		return h
	}
	return "try again later, or name another model in spec.fallbacks"
}

func names(choices []*choice) string {
	quoted := make([]string, len(choices))
	for i, k := range choices {
		quoted[i] = fmt.Sprintf("%q", k.Name)
	}
	if len(quoted) == 1 {
		return "model " + quoted[0]
	}
	last := len(quoted) - 1
	return "models " + strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}

// Close ends the conversation with every model that was opened.
func (c *Conversation) Close() error {
	var all []error
	for _, k := range c.choices {
		if closer, ok := k.talk.(io.Closer); ok {
			all = append(all, closer.Close())
		}
	}
	return errors.Join(all...)
}
