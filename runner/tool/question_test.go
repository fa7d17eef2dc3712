package tool

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

func TestTheModelAsksAPerson(t *testing.T) {
	answer := func(s message.ReplyState, text, why string) message.Reply {
		return message.Reply{State: s, Answer: text, Reason: why, By: "terminal"}
	}
	const two = `{"questions":[{"question":"Which colour?","options":["red","blue"],"multiple":true},{"question":"Which name?"}]}`
	for name, c := range map[string]struct {
		reason, args string
		replies      []message.Reply
		want         string
		failed       bool
	}{
		"answered":   {"both are asked", two, []message.Reply{answer(message.ReplyAnswered, "red\nblue", ""), answer(message.ReplyAnswered, "x, y hunter2", "")}, "question: Which colour?\nanswer: red, blue\nquestion: Which name?\nanswer: x, y ***", false},
		"refused":    {"the next one is still asked", two, []message.Reply{answer(message.ReplyRefused, "", "not now"), answer(message.ReplyAnswered, "x", "")}, "question: Which colour?\nno answer: the person refused to answer: not now\nquestion: Which name?\nanswer: x", false},
		"nobody":     {"the next one is not asked", two, []message.Reply{answer(message.ReplyUnanswered, "", "nobody can answer: no terminal, onAsk: Deny")}, "question: Which colour?\nno answer: nobody can answer: no terminal, onAsk: Deny. Go on", false},
		"late":       {"the next one is not asked", two, []message.Reply{answer(message.ReplyExpired, "", "late")}, "question: Which colour?\nno answer came in time", false},
		"impossible": {"what was asked before is kept", two, []message.Reply{answer(message.ReplyAnswered, "red", ""), {}}, "question: Which colour?\nanswer: red\n\nquestion 2 was not asked: bad options", true},
	} {
		var asked []message.Inquiry
		r := registry(t, nil, shipped(t, "question"))
		r.Inquire = func(_ context.Context, call string, in message.Inquiry) (message.Reply, error) {
			if asked = append(asked, in); call != "c1" {
				t.Errorf("%s: asked for call %q", name, call)
			}
			if reply := c.replies[len(asked)-1]; reply.State != "" {
				return reply, nil
			}
			return message.Reply{}, errors.New("bad options")
		}
		got, err := called(t, r, "question", c.args)
		if err != nil || got.Failed() != c.failed || !strings.HasPrefix(got.Text, c.want) || len(asked) != len(c.replies) {
			t.Errorf("%s (%s): %+v, %v, %d asked", name, c.reason, got, err, len(asked))
		}
		if d := cmp.Diff(message.Inquiry{Text: "Which colour?", Options: []string{"red", "blue"}, Multiple: true}, asked[0]); d != "" {
			t.Errorf("%s: (-want +got):\n%s", name, d)
		}
	}
}

func TestAQuestionWithoutAPersonIsAnswered(t *testing.T) {
	r := registry(t, nil, shipped(t, "question"))
	got, err := called(t, r, "question", `{"questions":[{"question":"Which?"}]}`)
	if err != nil || got.Failed() || !strings.Contains(got.Text, "nobody can answer") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAQuestionEndsWithItsRun(t *testing.T) {
	r := registry(t, nil, shipped(t, "question"))
	r.Inquire = func(ctx context.Context, _ string, _ message.Inquiry) (message.Reply, error) {
		<-ctx.Done()
		return message.Reply{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call := message.ToolCall{ID: "c1", Tool: "question", Args: []byte(`{"questions":[{"question":"Which?"}]}`)}
	if got, err := r.Run(ctx, call, func(string) {}); err != nil || got.Code != message.CodeCancelled {
		t.Errorf("%+v, %v", got, err)
	}
	r.Inquire = func(context.Context, string, message.Inquiry) (message.Reply, error) {
		return message.Reply{}, reason.New(reason.ToolError, "the disk is full")
	}
	if _, err := r.Run(t.Context(), call, func(string) {}); reason.Of(err) != reason.ToolError {
		t.Errorf("an error of the run itself: %v", err)
	}
}
