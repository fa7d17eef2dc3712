package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/plugins/host"
)

func TestAToolAsksThePersonBehindTheRun(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	says := func(text string, err error) func(context.Context, host.Question) (string, error) {
		return func(context.Context, host.Question) (string, error) { return text, err }
	}
	cases := map[string]struct {
		reason string
		args   string
		ask    func(context.Context, host.Question) (string, error)
		want   string
		failed bool
	}{
		"answered":            {"the text comes back", `{"question":"who?"}`, says("me", nil), "begun\nme", false},
		"an option":           {"an option is returned as the program wrote it", `{"question":"go?","options":[" yes\u202e","no"]}`, says("yes", nil), "begun\n yes\u202e", false},
		"none of the options": {"a tool gets only what it can expect", `{"question":"go?","options":["yes"]}`, says("perhaps", nil), "none of the options", true},
		"nobody":              {"a run without a person says so at once", `{"question":"who?"}`, nil, "nobody answers: no person is there", true},
		"refused":             {"the reason reaches the tool", `{"question":"who?"}`, says("", errors.New("not now")), "nobody answers: not now", true},
		"empty":               {"an empty question is shown to nobody", `{"question":" \n"}`, says("x", nil), "the question is empty", true},
		"same options":        {"a person could not tell them apart", `{"question":"?","options":["a","\u200ba"]}`, says("a", nil), "there twice", true},
		"too long":            {"a question fits on a screen", `{"question":"` + strings.Repeat("x", 5000) + `"}`, says("x", nil), "at most 4096 bytes", true},
		"too many options":    {"so do its options", `{"question":"?","options":["` + strings.Repeat(`a","`, 20) + `b"]}`, says("a", nil), "16 options", true},
		"too often":           {"nobody is worn out", `{"question":"?","times":40}`, says("a", nil), "may ask 16 times", true},
		"a long answer":       {"an answer is a line, not a file", `{"question":"?"}`, says(strings.Repeat("é", 4000), nil), "begun\n" + strings.Repeat("é", 2048), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := p.Call(t.Context(), host.CallRequest{Tool: "asks", Args: []byte(c.args), Ask: c.ask, Timeout: time.Minute}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.IsError != c.failed || c.failed && !strings.Contains(res.Text, c.want) || !c.failed && res.Text != c.want {
				t.Errorf("%s: %+v, want %q", c.reason, res, c.want)
			}
		})
	}
}

func TestAQuestionIsShownCleaned(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	var got host.Question
	var shown []string
	_, err := p.Call(t.Context(), host.CallRequest{
		Tool: "asks", Args: []byte(`{"question":"delete\u001b[2J it?\nreally","options":["\u001b]0;x\u0007yes","no"]}`),
		Ask: func(_ context.Context, q host.Question) (string, error) { got = q; return "no", nil },
	}, func(e host.Event) {
		if e.Progress != "" {
			shown = append(shown, e.Progress)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(host.Question{Text: "delete it?\nreally", Options: []string{"yes", "no"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(shown) > 0 {
		t.Errorf("question.asked and question.answered record the question; progress repeats it: %q", shown)
	}
}

// The question to a person is withdrawn when the call ends, and the call does not wait for
// it.
func TestAQuestionEndsWithItsCall(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	for name, timeout := range map[string]time.Duration{"cancelled": 0, "out of time": 10 * time.Second} {
		ctx, cancel := context.WithCancel(t.Context())
		asked, released := make(chan struct{}), make(chan struct{})
		if timeout == 0 {
			go func() { <-asked; cancel() }()
		}
		res, err := p.Call(ctx, host.CallRequest{
			Tool: "asks", Args: []byte(`{"question":"?"}`), Timeout: timeout,
			Ask: func(ctx context.Context, _ host.Question) (string, error) {
				close(asked)
				<-ctx.Done()
				close(released)
				return "", ctx.Err()
			},
		}, nil)
		if (timeout == 0) != errors.Is(err, context.Canceled) || res == nil || !res.IsError || !strings.HasPrefix(res.Text, "begun") {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		select {
		case <-released:
		case <-time.After(patience):
			t.Errorf("%s: who was asked is still waiting", name)
		}
		cancel()
	}
}

func TestAToolReadsTheHistoryOfTheRun(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-fixtures")
	var wanted atomic.Int64
	long := func(_ context.Context, most int) ([]host.Message, error) {
		wanted.Store(int64(most))
		said := []host.Message{{Role: "user", Text: "begin"}}
		for i := range 99 {
			said = append(said, host.Message{Role: "assistant", Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 40<<10))})
		}
		return append(said, host.Message{Role: "user", Text: "end\x00é"}), nil
	}
	ask := func(args string, history func(context.Context, int) ([]host.Message, error)) *host.CallResult {
		res, err := p.Call(t.Context(), host.CallRequest{Tool: "history", Args: []byte(args), History: history}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := ask(`{"most":1}`, long); res.Text != "user 6 end\x00é\n" || wanted.Load() != 1 {
		t.Errorf("the newest: %q, asked for %d", res.Text, wanted.Load())
	}
	res := ask(`{}`, long)
	lines := strings.Split(strings.TrimSpace(res.Text), "\n")
	if len(lines) != 32 || !strings.HasPrefix(lines[0], "assistant 32768 68 xxx") {
		t.Errorf("%d messages, the first %q: want what fits into 1 MiB, cut to 32 KiB each", len(lines), lines[0])
	}
	for name, history := range map[string]func(context.Context, int) ([]host.Message, error){
		"the run gives no history": nil,
		"not today":                func(context.Context, int) ([]host.Message, error) { return nil, errors.New("not today") },
	} {
		if res := ask(`{}`, history); !res.IsError || !strings.Contains(res.Text, name) {
			t.Errorf("%+v, want %q", res, name)
		}
	}
	if res := ask(`{}`, func(context.Context, int) ([]host.Message, error) { return nil, nil }); res.IsError || res.Text != "" {
		t.Errorf("no messages: %+v", res)
	}
}

func TestStrangeWishesHarmNobody(t *testing.T) {
	t.Parallel()
	p := start(t, exe(t), "serve-rogue", "strange wishes")
	var asked atomic.Int64
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "t", Args: []byte(`{}`), Ask: func(context.Context, host.Question) (string, error) {
		asked.Add(1)
		return "", nil
	}}, nil)
	if err != nil || res.Text != "fine" {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := asked.Load(); n > 16 {
		t.Errorf("a person was asked %d times", n)
	}
}
