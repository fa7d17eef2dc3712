package approval

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestAToolAsksAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		typed   string
		options []string
		want    string
		state   message.ReplyState
	}{
		"a line":                {"  blue \n", nil, "blue", message.ReplyAnswered},
		"an option's number":    {"2\n", []string{"red", "blue"}, "blue", message.ReplyAnswered},
		"an option's text":      {"red\n", []string{"red", "blue"}, "red", message.ReplyAnswered},
		"a number that is text": {"2\n", []string{"1", "3", "2"}, "2", message.ReplyAnswered},
		"not an option at once": {"green\n3\n1\n", []string{"red", "blue"}, "red", message.ReplyAnswered},
		"the end of the input":  {"", nil, "", message.ReplyUnanswered},
		"Enter refuses":         {"\n", nil, "", message.ReplyRefused},
		"blanks refuse":         {"  \t\n", []string{"red"}, "", message.ReplyRefused},
		"n refuses":             {"N\n", []string{"red", "blue"}, "", message.ReplyRefused},
		"no is an option":       {"no\n", []string{"yes", "no"}, "no", message.ReplyAnswered},
		"n is a text":           {"n\n", nil, "n", message.ReplyAnswered},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			terminal := NewTerminal(strings.NewReader(c.typed), &out, nil)
			defer terminal.Close()
			q := &Questioner{Terminal: terminal, Timeout: time.Minute}
			got, err := q.Ask(t.Context(), message.ToolCall{ID: "c", Tool: "paint\x1b[2J"}, message.Inquiry{ID: "q1", Text: "Which\ncolour\u202e?", Options: c.options})
			if got.Answer != c.want || got.State != c.state || got.ID != "q1" || err != nil {
				t.Errorf("got %+v, %v", got, err)
			}
			if shown := out.String(); strings.ContainsAny(shown, "\x1b\u202e") || !strings.Contains(shown, "allows nothing") {
				t.Errorf("shown: %q", shown)
			}
		})
	}
}

func TestAQuestionOfAToolEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		terminal := NewTerminal(in, io.Discard, nil)
		q := &Questioner{Terminal: terminal, Timeout: time.Minute}
		began := time.Now()
		if r, err := q.Ask(t.Context(), message.ToolCall{ID: "c", Tool: "x"}, message.Inquiry{Text: "?"}); err != nil || r.State != message.ReplyExpired || time.Since(began) != time.Minute {
			t.Errorf("ended after %s with %+v, %v", time.Since(began), r, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Ask(ctx, message.ToolCall{ID: "c", Tool: "x"}, message.Inquiry{Text: "?"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a question outlives its call: %v", err)
		}
		terminal.Close()
		_ = typed.Close()
		synctest.Wait()
	})
}

// whileAsked puts a question to an inbox in which requests are left while it waits.
func whileAsked(t *testing.T, q *Questioner, in message.Inquiry, leave func()) message.Reply {
	t.Helper()
	replied := make(chan message.Reply, 1)
	go func() {
		r, err := q.Ask(t.Context(), message.ToolCall{ID: "c", Tool: "x"}, in)
		if err != nil {
			t.Error(err)
		}
		replied <- r
	}()
	synctest.Wait()
	leave()
	return <-replied
}

func TestAnAnswerFromAnotherProcessReachesATool(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		in      message.Inquiry
		request Request
		want    message.Reply
		refused string
	}{
		"a text":         {message.Inquiry{}, Request{State: message.Approved, Answer: text("teal")}, message.Reply{State: message.ReplyAnswered, Answer: "teal"}, ""},
		"an option":      {message.Inquiry{Options: []string{"red", "blue"}}, Request{State: message.Approved, Answer: text("2")}, message.Reply{State: message.ReplyAnswered, Answer: "blue"}, ""},
		"a refusal":      {message.Inquiry{}, Request{State: message.Rejected, Reason: "ask later"}, message.Reply{State: message.ReplyRefused, Reason: "ask later"}, ""},
		"not an option":  {message.Inquiry{Options: []string{"red"}}, Request{State: message.Approved, Answer: text("green")}, message.Reply{State: message.ReplyExpired}, "one of the options"},
		"no answer":      {message.Inquiry{}, Request{State: message.Approved}, message.Reply{State: message.ReplyExpired}, "has no answer"},
		"other question": {message.Inquiry{}, Request{State: message.Approved, Answer: text("x"), Binding: "other"}, message.Reply{State: message.ReplyExpired}, "is not what was"},
		"ends the run":   {message.Inquiry{}, Request{State: message.Rejected, EndRun: true}, message.Reply{State: message.ReplyExpired}, "this is a question"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inbox, refused := NewInbox(t.TempDir(), time.Now), ""
				q := &Questioner{Timeout: time.Minute, Remote: &Remote{
					Run: "r", Inbox: inbox, Now: time.Now, Binding: func(string) string { return "b" },
					Used: func(string, string) bool { return false }, Refused: func(_ string, why error) { refused = why.Error() },
				}}
				c.in.ID, c.in.Text = "q1", "?"
				c.request.ID, c.request.Run, c.request.Call, c.request.By, c.request.Time = "a1", "r", "c", "jane", time.Now().UnixMilli()
				if c.request.Binding == "" {
					c.request.Binding = "b"
				}
				got := whileAsked(t, q, c.in, func() {
					if err := inbox.Put(c.request); err != nil {
						t.Error(err)
					}
				})
				if got.State != c.want.State || got.Answer != c.want.Answer || c.want.State != message.ReplyExpired && (got.By != "jane" || got.Via != "inbox" || got.Request != "a1") {
					t.Errorf("got %+v", got)
				}
				if !strings.Contains(refused, c.refused) || (refused == "") != (c.refused == "") {
					t.Errorf("refused because %q, want %q", refused, c.refused)
				}
				if q.Answered("c", got); inbox.Has("c", "a1") {
					t.Error("the request is still in the inbox")
				}
			})
		})
	}
}

func TestAnAnswerFromOutsideEndsThePrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		var out bytes.Buffer
		terminal := NewTerminal(in, &out, nil)
		inbox := NewInbox(t.TempDir(), time.Now)
		q := &Questioner{Terminal: terminal, Timeout: time.Minute, Remote: &Remote{
			Run: "r", Inbox: inbox, Now: time.Now, Binding: func(string) string { return "b" }, Used: func(string, string) bool { return false },
		}}
		answer := "teal"
		got := whileAsked(t, q, message.Inquiry{ID: "q1", Text: "?"}, func() {
			err := inbox.Put(Request{ID: "a1", Run: "r", Call: "c", Binding: "b", State: message.Approved, Answer: &answer, By: "jane\x1b", Time: time.Now().UnixMilli()})
			if err != nil {
				t.Error(err)
			}
		})
		if got.Answer != "teal" || !strings.Contains(out.String(), "answered by jane") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("got %+v, shown %q", got, out.String())
		}
		terminal.Close()
		_ = typed.Close()
		synctest.Wait()
	})
}

func TestWhoeverMayNotBeAskedIsNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		choice Choice
		onAsk  v1alpha1.OnAsk
		waits  bool
	}{
		"deny":        {Choice{}, v1alpha1.OnAskDeny, false},
		"suspend":     {Choice{}, v1alpha1.OnAskSuspend, false},
		"wait":        {Choice{}, v1alpha1.OnAskWait, true},
		"never, wait": {Choice{Mode: ModeNever}, v1alpha1.OnAskWait, true},
		"all":         {Choice{Mode: ModeAll}, v1alpha1.OnAskWait, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := c.choice.Questioner(Options{OnAsk: c.onAsk, Timeout: time.Hour, Remote: &Remote{
				Inbox: NewInbox(t.TempDir(), time.Now), Binding: func(string) string { return "b" },
			}})
			began := time.Now()
			r, err := q.Ask(t.Context(), message.ToolCall{ID: "c", Tool: "x"}, message.Inquiry{ID: "q1", Text: "?"})
			want, after := message.ReplyUnanswered, time.Duration(0)
			if c.waits {
				want, after = message.ReplyExpired, time.Hour
			}
			if err != nil || r.State != want || time.Since(began) != after || r.Reason == "" {
				t.Errorf("%s: got %+v, %v after %s", name, r, err, time.Since(began))
			}
		})
	}
}

func TestAQuestionHasBounds(t *testing.T) {
	many := make([]string, maxOptions+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, c := range map[string]struct {
		in   message.Inquiry
		want string
	}{
		"good":        {message.Inquiry{Text: "?", Options: many[:maxOptions]}, ""},
		"empty":       {message.Inquiry{Text: " \n"}, "empty"},
		"long":        {message.Inquiry{Text: strings.Repeat("x", maxQuestion+1)}, "longer"},
		"bytes":       {message.Inquiry{Text: "\xff"}, "UTF-8"},
		"options":     {message.Inquiry{Text: "?", Options: many}, "more than 32 options"},
		"long option": {message.Inquiry{Text: "?", Options: []string{strings.Repeat("x", maxOption+1)}}, "option 1"},
		"lines":       {message.Inquiry{Text: "?", Options: []string{"a", "b\nc"}, Multiple: true}, "option 2 has several lines"},
		"twice":       {message.Inquiry{Text: "?", Options: []string{"a", "a"}}, "option 2"},
	} {
		if err := CheckInquiry(c.in); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSeveralOptionsCanBeChosen(t *testing.T) {
	in := message.Inquiry{Text: "?", Options: []string{"red", "blue", "1", "a, b"}, Multiple: true}
	for name, c := range map[string]struct{ reason, text, want string }{
		"texts":    {"the order is that of the question", "blue, red", "red\nblue"},
		"numbers":  {"a number is that of an option", "2,4", "blue\na, b"},
		"lines":    {"as programs write them", "a, b\nred", "red\na, b"},
		"one":      {"one is enough", "blue", "blue"},
		"twice":    {"an option is chosen once", "red,red", "red"},
		"a number": {"the text of an option comes first", "1", "1"},
		"a comma":  {"an option may have one", "a, b", "a, b"},
		"unknown":  {"all have to be options", "red, green", ""},
		"nothing":  {"an empty part is no option", "red,", ""},
		"blank":    {"an answer is not empty", " ", ""},
	} {
		got, err := Choose(in, c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s (%s): %q, %v", name, c.reason, got, err)
		}
	}
	if _, err := Choose(message.Inquiry{Text: "?", Options: in.Options}, "red, blue"); err == nil {
		t.Error("two options answer a question that allows one")
	}
}
