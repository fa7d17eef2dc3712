package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/runner/runs"
)

// askingProgram is the test program as a plugin with a tool that asks.
const askingProgram = "asking-tools"

type askingIn struct {
	Options []string `json:"options,omitempty"`
}

func askingTools() []sdk.Tool {
	return []sdk.Tool{sdk.New("paint", "Asks which colour.", func(ctx context.Context, call *sdk.Call, in askingIn) (*sdk.Result, error) {
		said, err := call.Ask(ctx, "Which colour\x1b[2J?", in.Options...)
		if err != nil {
			return nil, sdk.Errorf("%v", err)
		}
		return &sdk.Result{Text: "painted " + said}, nil
	})}
}

// painter has an agent whose tool asks.
func painter(t *testing.T, onAsk, args string) place {
	t.Helper()
	program := filepath.Join(os.Getenv("AGENTCTL_LIBEXEC"), askingProgram)
	tool := fmt.Sprintf("apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: paint}\nspec:\n  source: {plugin: {command: [%q]}}\n", program)
	policy := strings.Replace(askAll, "action: ask", "action: allow", 1)
	return newPlace(t, agent("approvals: {onAsk: "+onAsk+", timeout: 10m}\ntools: [{name: paint}]\npolicyRefs: [{name: p}]",
		"- calls: [{tool: paint, args: "+args+"}]\n- say: done\n", tool, policy), nil)
}

// inquired begins a run and returns when its tool asks.
func (p place) inquired(ctx context.Context, t *testing.T, change ...func(*RunOptions)) (question event.Event, outcome <-chan *Outcome) {
	t.Helper()
	asked := make(chan event.Event, 1)
	ended := make(chan *Outcome, 1)
	go func() {
		defer close(asked)
		ended <- p.runWith(ctx, t, append(change, func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, is := e.Data.(event.QuestionAsked); is {
					asked <- e
				}
			}
		})...)
	}()
	e, ok := <-asked
	if !ok {
		t.Fatal("the tool never asked")
	}
	return e, ended
}

func TestAnotherProcessAnswersARunningTool(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		change func(*runs.AnswerOptions)
		want   string
		state  message.ReplyState
	}{
		"a text":    {"{}", func(o *runs.AnswerOptions) { text := "teal\x1b"; o.Answer = &text }, "painted teal", message.ReplyAnswered},
		"an option": {"{options: [red, blue]}", func(o *runs.AnswerOptions) { text := "2"; o.Answer = &text }, "painted blue", message.ReplyAnswered},
		"a refusal": {"{}", func(o *runs.AnswerOptions) { o.Approve, o.Reason = false, "not today" }, "refused: not today", message.ReplyRefused},
	} {
		t.Run(name, func(t *testing.T) {
			p := painter(t, "Wait", c.args)
			e, outcome := p.inquired(t.Context(), t)
			q := e.Data.(event.QuestionAsked)
			if q.ExpiresAt == 0 || strings.Contains(q.Text, "\x1b") || e.Call != "call_1_1" || e.Message == "" {
				t.Errorf("got %+v", e)
			}
			calls, err := runs.Waiting(t.Context(), p.state)
			if err != nil || len(calls) != 1 || calls[0].Question == nil || calls[0].Ref != e.Run+"/call_1_1" || calls[0].State != runs.Waits {
				t.Fatalf("got %+v, %v", calls, err)
			}
			var shown strings.Builder
			if err := calls[0].Write(&shown); err != nil || !strings.Contains(shown.String(), "tool paint asks") {
				t.Errorf("got %v: %s", err, shown.String())
			}
			for wrong, o := range map[string]runs.AnswerOptions{
				"needs an answer":   {Approve: true},
				"cannot end":        {EndRun: true},
				"approved for alwa": {Approve: true, Always: true},
			} {
				o.Ref, o.State, o.By = e.Run, p.state, "jane"
				if _, err := runs.Answer(t.Context(), o); err == nil || !strings.Contains(err.Error(), wrong) {
					t.Errorf("got %v, want %q", err, wrong)
				}
			}
			if a := p.answer(t, "@latest", c.change); !a.Taken {
				t.Errorf("got %+v", a)
			}
			out := <-outcome
			if text := out.Run.Call("call_1_1").Result.Text; !strings.Contains(text, c.want) {
				t.Errorf("the model reads %q", text)
			}
			r := out.Run.Reply("call_1_1")
			if r == nil || r.State != c.state || r.By != "jane@pts/1" || r.Via != "inbox" || r.Request == "" || len(out.Run.PendingApprovals) > 0 {
				t.Errorf("the journal has %+v", r)
			}
			if left, err := os.ReadDir(filepath.Join(out.Journal, "inbox")); err != nil || len(left) > 0 {
				t.Errorf("left in the inbox: %v, %v", left, err)
			}
		})
	}
}

func TestAToolIsToldAtOnceThatNobodyAnswers(t *testing.T) {
	for _, onAsk := range []string{"Deny", "Suspend"} {
		out := painter(t, onAsk, "{}").run(t) // and the replay has the same events
		r := out.Run.Reply("call_1_1")
		if out.Run.Phase != view.Succeeded || r == nil || r.State != message.ReplyUnanswered || r.Via != "" {
			t.Errorf("onAsk %s: got %s, %+v", onAsk, out.Run.Phase, r)
		}
		if text := out.Run.Call("call_1_1").Result.Text; !strings.Contains(text, "nobody can answer") {
			t.Errorf("onAsk %s: the model reads %q", onAsk, text)
		}
	}
}

func TestAQuestionEndsWithItsCall(t *testing.T) {
	p := painter(t, "Wait", "{}")
	ctx, cancel := context.WithCancel(t.Context())
	e, outcome := p.inquired(ctx, t)
	cancel()
	out := <-outcome
	if out.Run.Inquiry(e.Call) != nil || out.Run.Reply(e.Call) != nil || len(out.Run.PendingApprovals) > 0 {
		t.Errorf("the question is still open: %+v", out.Run.PendingApprovals)
	}
	text := "late"
	_, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: e.Run + "/" + e.Call, State: p.state, By: "jane", Approve: true, Answer: &text, Patience: time.Second})
	if err == nil || !strings.Contains(err.Error(), "has ended already") {
		t.Errorf("got %v", err)
	}
}
