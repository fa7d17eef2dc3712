package fallback

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var _ model.Conversation = (*Conversation)(nil)

// fake is a model that answers with what it received, or fails as it is set to.
type fake struct {
	name string
	// fails are returned in order; nil, and the end of the list, is an answer.
	fails []error
	// openFails is the same for Open.
	openFails []error
	retries   int

	asked, opened, closed int
	told, reset           []string
	answers               []modeltest.Answer
}

func (f *fake) choice() Choice {
	return Choice{Name: f.name, Open: func() (model.Conversation, error) {
		f.opened++
		if err := shift(&f.openFails); err != nil {
			return nil, err
		}
		return f, nil
	}}
}

func shift(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

func (f *fake) Append(m *message.Message) error {
	f.told = append(f.told, m.ID)
	if m.Role == "" {
		return fmt.Errorf("message %s has no role", m.ID)
	}
	return nil
}

func (f *fake) Reset(history []*message.Message) error {
	f.told = nil
	for _, m := range history {
		f.told = append(f.told, m.ID)
	}
	f.reset = f.told
	return nil
}

func (f *fake) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	f.asked++
	err := shift(&f.fails)
	if err != nil {
		if e := emit(message.Delta{Kind: message.DeltaText, Text: "half"}); e != nil {
			return nil, e
		}
	}
	for n := range f.retries {
		if e := emit(message.Delta{Kind: message.DeltaRetry, Retry: &message.Retry{Attempt: n + 1, Attempts: f.retries + 1}}); e != nil {
			return nil, e
		}
	}
	if ctx.Err() != nil {
		return nil, model.Explain(context.Cause(ctx))
	}
	if err != nil {
		return nil, model.Explain(fmt.Errorf("model %q: %w", f.name, err))
	}
	out := &message.Output{Text: strings.Join(f.told, " "), Finish: message.FinishStop, Model: message.ModelRef{Name: f.name}}
	if len(f.answers) > 0 {
		a := f.answers[0]
		f.answers = f.answers[1:]
		out.Text = a.Text
		for _, c := range a.Calls {
			if req.Aside == nil && !req.NoTools {
				out.Calls, out.Finish = append(out.Calls, message.CallRequest{ID: c.ID, Tool: c.Tool, Args: c.Args}), message.FinishToolCalls
			}
		}
	}
	if err := emit(message.Delta{Kind: message.DeltaText, Text: out.Text}); err != nil {
		return nil, err
	}
	return out, nil
}

func (f *fake) Close() error { f.closed++; return nil }

func down(kind model.Kind) error {
	return &model.Error{Kind: kind, Class: "503", Err: errors.New("the server is down"), Hint: "wait"}
}

func downFor(d time.Duration) error {
	return &model.Error{Kind: model.Unavailable, Class: "429", Err: errors.New("too many"), Wait: &d}
}

func begin(t *testing.T, fakes ...*fake) *Conversation {
	t.Helper()
	choices := make([]Choice, len(fakes))
	for i, f := range fakes {
		if f.name == "" {
			f.name = string(rune('a' + i))
		}
		choices[i] = f.choice()
	}
	c, err := New(choices, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, f := range fakes {
			if opened := f.opened > len(f.openFails); f.closed > 1 || (f.asked > 0 && f.closed != 1) {
				t.Errorf("model %s was opened: %t, and closed %d times", f.name, opened, f.closed)
			}
		}
	})
	return c
}

func user(id string) *message.Message { return &message.Message{ID: id, Role: message.RoleUser} }

func say(t *testing.T, c *Conversation, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := c.Append(user(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// ask returns the model and its answer: "name: text", and the retries with another model.
func ask(t *testing.T, c *Conversation) (string, []message.Retry) {
	t.Helper()
	var turns []message.Retry
	out, err := c.Next(t.Context(), message.Request{}, func(d message.Delta) error {
		if d.Kind == message.DeltaRetry && d.Retry.Fallback != "" {
			turns = append(turns, *d.Retry)
		}
		return nil
	})
	if err != nil {
		return "error: " + err.Error(), turns
	}
	return out.Model.Name + ": " + out.Text, turns
}

func answers(t *testing.T, c *Conversation, want string) {
	t.Helper()
	if got, _ := ask(t, c); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBasics(t *testing.T) {
	modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
		t.Helper()
		c, err := New([]Choice{(&fake{name: "a", answers: answers}).choice(), (&fake{name: "b"}).choice()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	t.Run("Fallback", func(t *testing.T) {
		modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
			t.Helper()
			first := &fake{name: "a", fails: []error{down(model.Retryable)}}
			c, err := New([]Choice{first.choice(), (&fake{name: "b", answers: answers}).choice()}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

func TestOnlyWhatAnotherModelCanMendTurnsToIt(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		err    error
		turns  bool
	}{
		"down":       {"the attempts are spent", down(model.Retryable), true},
		"quota":      {"it will not pass soon", down(model.Unavailable), true},
		"far away":   {"the wait is longer than anybody waits", downFor(time.Hour), true},
		"bad":        {"the same request would be as wrong there", down(model.Never), false},
		"key":        {"a refused key is for a person to mend", down(model.Credential), false},
		"overflow":   {"the conversation is compacted first", down(model.Overflow), false},
		"filtered":   {"one provider's refusal is not got round with another", down(model.Filtered), false},
		"unknown":    {"an error of our own is none of the provider", errors.New("what?"), false},
		"unspeaking": {"no class, only a reason", reason.New(reason.ProviderUnavailable, "no"), false},
	} {
		a, b := &fake{fails: []error{c.err}, retries: 4}, &fake{}
		conversation := begin(t, a, b)
		say(t, conversation, "m1")
		got, turns := ask(t, conversation)
		if c.turns != (got == "b: m1") || c.turns != (b.asked == 1) {
			t.Errorf("%s: %s; got %q", name, c.reason, got)
		}
		if !c.turns {
			if len(turns) > 0 || b.opened > 0 {
				t.Errorf("%s: turned to another: %v", name, turns)
			}
			continue
		}
		e, _ := errors.AsType[*model.Error](c.err)
		want := []message.Retry{{Attempt: 5, Attempts: 5, Class: e.Class, Error: e.Error(), Fallback: "b"}}
		if d := cmp.Diff(want, turns); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestCooldown(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		reason string
		err    error
		wait   time.Duration
		want   string
	}{
		"at once":        {"it has just failed", down(model.Retryable), 0, "b"},
		"just before":    {"the time has not passed", down(model.Retryable), DefaultCooldown - 1, "b"},
		"after":          {"then it is tried first again", down(model.Retryable), DefaultCooldown, "a"},
		"short wait":     {"less than the cool-down is not less", downFor(second), DefaultCooldown - 1, "b"},
		"long wait":      {"the server knows better", downFor(time.Hour), 59 * time.Minute, "b"},
		"long wait over": {"and no longer than that", downFor(time.Hour), time.Hour, "a"},
		"for ever":       {"a wait that cannot be counted is no overflow", downFor(math.MaxInt64), 1000 * time.Hour, "b"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{fails: []error{c.err}}
			conversation := begin(t, a, &fake{})
			say(t, conversation, "m1")
			answers(t, conversation, "b: m1")
			time.Sleep(c.wait)
			say(t, conversation, "m2")
			if got, _ := ask(t, conversation); got != c.want+": m1 m2" {
				t.Errorf("%s: %q: %s", name, got, c.reason)
			}
		})
	}
}

func TestEachIsToldWhatItHasNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{fails: []error{nil, down(model.Retryable)}}, &fake{}
		c := begin(t, a, b)
		say(t, c, "m1", "m2")
		answers(t, c, "a: m1 m2")
		if b.opened > 0 {
			t.Error("a fallback was opened before it was needed")
		}
		say(t, c, "m3")
		answers(t, c, "b: m1 m2 m3")
		say(t, c, "m4")
		answers(t, c, "b: m1 m2 m3 m4")
		if d := cmp.Diff([]string{"m1", "m2", "m3"}, a.told); d != "" {
			t.Errorf("the one that is not asked hears nothing:\n%s", d)
		}
		if err := c.Reset([]*message.Message{user("m1"), user("summary")}); err != nil {
			t.Fatal(err)
		}
		say(t, c, "m5")
		answers(t, c, "b: m1 summary m5")
		time.Sleep(DefaultCooldown)
		say(t, c, "m6")
		answers(t, c, "a: m1 summary m5 m6")
		if err := c.Reset(nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Reset([]*message.Message{user("only")}); err != nil {
			t.Fatal(err)
		}
		answers(t, c, "a: only")
		if a.opened != 1 || b.opened != 1 {
			t.Errorf("opened %d and %d times", a.opened, b.opened)
		}
	})
}

// A model whose steps depend on the requests must receive them, too, when it is asked
// after a compaction.
func TestWhatWasForgottenStillCountsAsAsked(t *testing.T) {
	var heard []string
	late := Choice{Name: "b", Open: func() (model.Conversation, error) { return &listener{heard: &heard}, nil }}
	c, err := New([]Choice{(&fake{name: "a", fails: []error{nil, down(model.Retryable)}}).choice(), late}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, "m1", "m2")
	answers(t, c, "a: m1 m2")
	if err := c.Reset([]*message.Message{user("s")}); err != nil {
		t.Fatal(err)
	}
	say(t, c, "m3")
	answers(t, c, "b: ")
	if d := cmp.Diff([]string{"m1", "m2", "reset to s", "m3"}, heard); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

type listener struct{ heard *[]string }

func (l *listener) Append(m *message.Message) error { *l.heard = append(*l.heard, m.ID); return nil }

func (l *listener) Reset(history []*message.Message) error {
	*l.heard = append(*l.heard, "reset to "+history[0].ID)
	return nil
}

func (l *listener) Next(context.Context, message.Request, func(message.Delta) error) (*message.Output, error) {
	return &message.Output{Model: message.ModelRef{Name: "b"}}, nil
}

func TestEveryModelInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := []error{down(model.Retryable), down(model.Retryable), down(model.Retryable)}
		a, b, d := &fake{fails: always}, &fake{openFails: []error{reason.New(reason.CredentialMissing, "no key")}}, &fake{name: "d", fails: []error{nil, downFor(time.Hour)}}
		c := begin(t, a, b, d)
		say(t, c, "m1")
		got, turns := ask(t, c)
		if got != "d: m1" || len(turns) != 2 || turns[0].Fallback != "b" || turns[1].Fallback != "d" || turns[1].Class != "unavailable" || !strings.Contains(turns[1].Error, "no key") {
			t.Errorf("got %q over %+v", got, turns)
		}
		// Only the last is left, and it fails: there is no other.
		_, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return nil })
		if reason.Of(err) != reason.ProviderUnavailable || !strings.HasPrefix(err.Error(), `models "a", "b" and "d" are unavailable; the last said: model "d": too many`) || reason.Hint(err) == "" {
			t.Errorf("%v (%s, hint %q)", err, reason.Of(err), reason.Hint(err))
		}
		// No model is asked while all cool down.
		before := a.asked + b.asked + d.asked
		if got, turns := ask(t, c); !strings.HasPrefix(got, "error: models ") || len(turns) > 0 || a.asked+b.asked+d.asked != before {
			t.Errorf("while all cool down: %q, %v", got, turns)
		}
		// A key that is there by then opens the model.
		time.Sleep(DefaultCooldown)
		if got, turns := ask(t, c); got != "b: m1" || len(turns) != 1 || b.opened != 2 {
			t.Errorf("after the cool-down: %q, %v", got, turns)
		}
	})
}

func TestFirstModelThatCannotBeOpened(t *testing.T) {
	wrong := &fake{name: "a", openFails: []error{reason.New(reason.ModelError, "no address")}}
	if c, err := New([]Choice{wrong.choice(), (&fake{name: "b"}).choice()}, Options{}); reason.Of(err) != reason.ModelError || c != nil {
		t.Errorf("a mistake in the manifest: %v", err)
	}
	foreign := reason.New(reason.ProviderUnavailable, "this version does not speak to it")
	c := begin(t, &fake{openFails: []error{foreign, foreign}}, &fake{})
	say(t, c, "m1")
	if got, turns := ask(t, c); got != "b: m1" || len(turns) != 1 {
		t.Errorf("got %q over %v", got, turns)
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("a conversation without a model")
	}
}

func TestErrorsThatAreNoModels(t *testing.T) {
	// The error of a fallback is its own, and names the model that it replaced.
	c := begin(t, &fake{fails: []error{down(model.Retryable)}}, &fake{fails: []error{down(model.Credential)}}, &fake{})
	_, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return nil })
	if reason.Of(err) != reason.CredentialRejected || !strings.HasPrefix(err.Error(), `in place of model "a": model "b": `) {
		t.Errorf("%v", err)
	}

	// The watcher stops the stream in the middle of a failing request.
	enough := errors.New("seen enough")
	b := &fake{}
	c = begin(t, &fake{fails: []error{down(model.Retryable)}}, b)
	if _, err := c.Next(t.Context(), message.Request{}, func(message.Delta) error { return enough }); b.asked > 0 || !errors.Is(err, enough) {
		t.Errorf("the watcher's error: %v, and %d requests to the next", err, b.asked)
	}
	c = begin(t, &fake{fails: []error{down(model.Retryable)}}, b)
	stopAtTurn := func(d message.Delta) error {
		if d.Kind == message.DeltaRetry {
			return enough
		}
		return nil
	}
	if _, err := c.Next(t.Context(), message.Request{}, stopAtTurn); !errors.Is(err, enough) || b.asked > 0 {
		t.Errorf("the watcher's error at the turn: %v", err)
	}

	// The end of the run is not a failure of a model.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = begin(t, &fake{fails: []error{down(model.Retryable)}}, b)
	if _, err := c.Next(ctx, message.Request{}, func(message.Delta) error { return nil }); reason.Of(err) != reason.Cancelled || b.asked > 0 {
		t.Errorf("cancelled: %v", err)
	}

	// A message that no model can be sent.
	c = begin(t, &fake{}, b)
	if err := c.Append(&message.Message{ID: "m1"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(t, c); !strings.Contains(got, "m1 has no role") || b.asked > 0 {
		t.Errorf("got %q", got)
	}
	if err := c.Reset(nil); err != nil {
		t.Fatal(err)
	}
	answers(t, begin(t, &fake{name: "only"}), "only: ")
	alone := begin(t, &fake{fails: []error{down(model.Retryable)}})
	if got, turns := ask(t, alone); got != `error: model "a": the server is down` || len(turns) > 0 {
		t.Errorf("one model alone: %q %v", got, turns)
	}
}
