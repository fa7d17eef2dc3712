package approval

import (
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

// desk is an remote whose question is always "b".
func desk(t *testing.T) (*Remote, *[]string) {
	t.Helper()
	refused := &[]string{}
	used := map[string]bool{}
	a := &Remote{
		Run: "r", Inbox: NewInbox(t.TempDir(), time.Now), Memory: NewMemory(nil), Now: time.Now,
		Binding: func(string) string { return "b" },
		Used:    func(_, request string) bool { defer func() { used[request] = true }(); return used[request] },
		Refused: func(_ string, why error) { *refused = append(*refused, why.Error()) },
	}
	return a, refused
}

func put(t *testing.T, a *Remote, id string, change func(*Request)) {
	t.Helper()
	r := request(id)
	if change != nil {
		change(&r)
	}
	if err := a.Inbox.Put(r); err != nil {
		t.Error(err)
	}
}

func waiting(a *Remote) Approver {
	return Choice{Mode: ModeNever}.Approver(Options{OnAsk: v1alpha1.OnAskWait, Timeout: time.Minute, Remote: a})
}

func TestWaitEndsWithAnAnswerFromOutside(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(*Request)
		want   message.Answer
		refuse string
	}{
		"approved": {"a yes is a yes", nil, message.Answer{State: message.Approved, By: "jane@pts/1", Scope: message.Once, Request: "ans-1"}, ""},
		"denied": {
			"a no ends the wait as well", func(r *Request) { r.State, r.Reason = message.Rejected, "no" },
			message.Answer{State: message.Rejected, By: "jane@pts/1", Reason: "no", Scope: message.Once, Request: "ans-1"},
			"",
		},
		"another question": {"the call has changed since it was shown", func(r *Request) { r.Binding = "x" }, message.Answer{State: message.Expired, By: "--approve never, onAsk: Wait"}, "not what was approved"},
		"another run":      {"the answer was for another run", func(r *Request) { r.Run = "s" }, message.Answer{State: message.Expired, By: "--approve never, onAsk: Wait"}, "another call"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, refused := desk(t)
				start := time.Now()
				time.AfterFunc(10*time.Second, func() { put(t, a, "ans-1", c.change) })
				got, err := waiting(a).Ask(t.Context(), question("R2", hashA))
				expires := got.ExpiresAt
				got.ExpiresAt = 0
				if got.Reason == "nobody answered in time" {
					got.Reason = ""
				}
				if err != nil || got.State != c.want.State || got.By != c.want.By || got.Reason != c.want.Reason || got.Request != c.want.Request {
					t.Errorf("%s: got %+v, %v; want %+v", c.reason, got, err, c.want)
				}
				if (expires > 0) != (got.State == message.Approved) {
					t.Errorf("expires at %d", expires)
				}
				if took := time.Since(start); (c.refuse == "") != (took < 11*time.Second) {
					t.Errorf("%s: took %s", c.reason, took)
				}
				if c.refuse != "" && (len(*refused) != 1 || !strings.Contains((*refused)[0], c.refuse)) {
					t.Errorf("%s: refused %q", c.reason, *refused)
				}
			})
		})
	}
}

func TestAnswerCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, refused := desk(t)
		put(t, a, "ans-1", nil)
		approver := waiting(a)
		if got, err := approver.Ask(t.Context(), question("R2", hashA)); err != nil || got.State != message.Approved {
			t.Fatalf("got %+v, %v", got, err)
		}
		// The process dies before the file is removed, and asks again.
		if got, err := approver.Ask(t.Context(), question("R2", hashA)); err != nil || got.State != message.Expired {
			t.Errorf("got %+v, %v", got, err)
		}
		if len(*refused) != 1 || !strings.Contains((*refused)[0], "used before") || a.Inbox.Has("c1", "ans-1") {
			t.Errorf("refused %q", *refused)
		}
	})
}

func TestAnswerIsGoodForADay(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		later  time.Duration
		want   message.ApprovalState
	}{
		"in time": {"the last moment of it", Life, message.Approved},
		"late":    {"what was looked at may be otherwise by now", Life + time.Second, message.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, refused := desk(t)
				put(t, a, "ans-1", nil)
				time.Sleep(c.later) // no process executes the run meanwhile
				got, err := waiting(a).Ask(t.Context(), question("R2", hashA))
				if err != nil || got.State != c.want {
					t.Errorf("%s: got %+v, %v", c.reason, got, err)
				}
				if late := len(*refused) == 1; late != (c.want == message.Expired) {
					t.Errorf("%s: refused %q", c.reason, *refused)
				}
				// An answer that is taken is good for what is left of that day.
				if got.State == message.Approved && got.ExpiresAt != time.Now().UnixMilli() {
					t.Errorf("until %s, now is %s", time.UnixMilli(got.ExpiresAt), time.Now())
				}
			})
		})
	}
}

func TestFirstOfTwoAnswersCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := desk(t)
		time.AfterFunc(time.Second, func() {
			put(t, a, "ans-2", func(r *Request) { r.State = message.Rejected })
			put(t, a, "ans-1", nil)
		})
		approver := waiting(a)
		got, err := approver.Ask(t.Context(), question("R2", hashA))
		if err != nil || got.Request != "ans-1" || !a.Inbox.Has("c1", "ans-1") {
			t.Fatalf("got %+v, %v", got, err)
		}
		approver.(*remoteApprover).Decided("c1", got)
		if a.Inbox.Has("c1", "ans-1") || !a.Inbox.Has("c1", "ans-2") {
			t.Error("the answer that stands in the journal is taken away, the other is left to who gave it")
		}
	})
}

func TestTerminalAndInboxAreHeardAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := desk(t)
		in, typed := io.Pipe()
		defer typed.Close()
		shown := &screen{}
		terminal := NewTerminal(in, shown, nil)
		defer terminal.Close()
		approver := Choice{}.Approver(Options{Terminal: terminal, Timeout: time.Hour, Remote: a})
		time.AfterFunc(time.Minute, func() { put(t, a, "ans-1", nil) })
		got, err := approver.Ask(t.Context(), question("R2", hashA))
		if err != nil || got.By != "jane@pts/1" || !strings.Contains(shown.String(), "\napproved by jane@pts/1\n") {
			t.Errorf("got %+v, %v, shown %q", got, err, shown)
		}
		// The terminal is free for the next question.
		time.AfterFunc(time.Minute, func() { _, _ = io.WriteString(typed, "y\n") })
		if got, err := approver.Ask(t.Context(), question("R2", hashB)); err != nil || got.By != "terminal" || got.State != message.Approved {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestAlwaysAnswersTheQuestionsThatFollow(t *testing.T) {
	a, _ := desk(t)
	put(t, a, "ans-1", func(r *Request) { r.Scope = message.Always })
	approver := waiting(a)
	got, err := approver.Ask(t.Context(), asked("R2", bash("ls *")))
	if err != nil || got.Scope != message.Always || len(got.Remember) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	next := asked("R2", bash("ls *"))
	next.Call.ID = "c2"
	if got, err := approver.Ask(t.Context(), next); err != nil || got.State != message.Approved || got.By != `remembered: bash "ls *"` || got.Scope == message.Always {
		t.Errorf("got %+v, %v", got, err)
	}
	// What can only be approved once is approved once, whatever was asked for.
	put(t, a, "ans-2", func(r *Request) { r.Scope = message.Always })
	if got, err := approver.Ask(t.Context(), asked("R3", bash("rm *"))); err != nil || got.Scope != message.Once || len(got.Remember) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAlwaysOnTheTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		reason, typed string
		q             message.Question
		scope         message.Scope
		shows, not    string
	}{
		"always":  {"one letter", "a\n", asked("R2", bash("ls *")), message.Always, `pattern: "ls *"`, "only once"},
		"once":    {"a yes is for once", "y\n", asked("R2", bash("ls *")), "", `always: bash "ls *"`, "remembered"},
		"not":     {"what cannot be remembered is asked about again", "a\ny\n", func() message.Question { q := asked("R2"); q.Decision.Once = "sh runs whatever it is given"; return q }(), "", "only once: sh runs", "[a]"},
		"no risk": {"nothing that cannot be undone", "a\ny\n", asked("R3", bash("rm *")), "", "answer y, n, r or q: ", "[a]"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := desk(t)
			in, typed := io.Pipe()
			shown := &screen{writer: typed, script: strings.SplitAfter(strings.TrimSuffix(c.typed, "\n"), "\n")}
			for i := range shown.script {
				shown.script[i] = strings.TrimSuffix(shown.script[i], "\n") + "\n"
			}
			terminal := NewTerminal(in, shown, nil)
			defer terminal.Close()
			defer typed.Close()
			got, err := Choice{}.Approver(Options{Terminal: terminal, Timeout: time.Minute, Remote: a}).Ask(t.Context(), c.q)
			if err != nil || got.State != message.Approved || got.Scope != c.scope || (got.Scope == message.Always) != a.Memory.Covers(c.q) {
				t.Errorf("%s: got %+v, %v", c.reason, got, err)
			}
			if text := shown.String(); !strings.Contains(text, c.shows) || strings.Contains(text, c.not) {
				t.Errorf("%s: shown\n%s", c.reason, text)
			}
		})
	}
}

func TestQuestionEndsWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := desk(t)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, err := waiting(a).Ask(ctx, question("R2", hashA)); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		if _, err := waiting(a).Ask(ctx, question("R2", hashA)); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHowLongAQuestionWaits(t *testing.T) {
	terminal := &Terminal{}
	for name, c := range map[string]struct {
		mode Mode
		o    Options
		want time.Duration
	}{
		"terminal":       {ModeAuto, Options{Terminal: terminal, Timeout: time.Minute}, time.Minute},
		"declared":       {ModePrompt, Options{Terminal: terminal}, defaultTimeout},
		"nobody":         {ModeAuto, Options{}, 0},
		"suspend":        {ModeNever, Options{OnAsk: v1alpha1.OnAskSuspend}, 0},
		"wait":           {ModeNever, Options{OnAsk: v1alpha1.OnAskWait, Terminal: terminal, Timeout: time.Minute}, time.Minute},
		"never":          {ModeNever, Options{Terminal: terminal}, 0},
		"all":            {ModeAll, Options{OnAsk: v1alpha1.OnAskWait}, 0},
		"listed, or not": {ModeFile, Options{OnAsk: v1alpha1.OnAskWait, Timeout: time.Minute}, time.Minute},
	} {
		if got := (Choice{Mode: c.mode}).Waits(c.o); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
