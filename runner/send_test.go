package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// talk sends messages to a run the very moment an event of it is written, which
// is as soon as anybody can have seen it.
type talk struct {
	t     *testing.T
	state string
	at    map[event.Type][]string // what is said at the first event of a type
	sent  []*Sent
}

func (k *talk) options(o *RunOptions) {
	k.state = o.State
	o.disk.write = func(f *os.File, b []byte) (int, error) {
		n, err := f.Write(b)
		var e event.Event
		if err != nil || !isEvents(f) || e.UnmarshalJSON(bytes.TrimSpace(b)) != nil {
			return n, err
		}
		texts := k.at[e.Type()]
		delete(k.at, e.Type())
		for _, text := range texts {
			s, err := Send(k.t.Context(), SendOptions{Ref: e.Run, State: k.state, Text: text, By: "jane"})
			if err != nil {
				k.t.Errorf("send %q at %s: %v", text, e.Type(), err)
				continue
			}
			k.sent = append(k.sent, s)
		}
		return n, nil
	}
}

// said are the texts of a conversation in order, calls as the name of the tool.
func said(v *view.Run) (texts []string) {
	for _, m := range v.Messages {
		if text := m.Text(); text != "" {
			texts = append(texts, string(m.Role)+": "+text)
		}
		for _, c := range m.Calls() {
			texts = append(texts, "call: "+c.Tool)
		}
	}
	return texts
}

const threeAnswers = `
- say: I look.
  calls: [{tool: bash, args: {command: "echo looked"}}]
- say: It is done.
- say: That, too.
- say: Now all is done.
`

func TestAMessageIsReadBeforeTheNextRequest(t *testing.T) {
	for name, c := range map[string]struct {
		at   map[event.Type][]string
		want []string
	}{
		"before the first request": {
			map[event.Type][]string{event.TypeRunStarted: {"Hurry."}},
			[]string{"user: go", "user: Hurry.", "assistant: I look.", "call: bash", "assistant: It is done."},
		},
		"while the model writes": {
			map[event.Type][]string{event.TypeTextStart: {"Look well."}},
			[]string{"user: go", "assistant: I look.", "call: bash", "user: Look well.", "assistant: It is done."},
		},
		"while a tool runs, in order": {
			map[event.Type][]string{event.TypeToolCall: {"One.", "Two."}},
			[]string{"user: go", "assistant: I look.", "call: bash", "user: One.", "user: Two.", "assistant: It is done."},
		},
		"while another is read": {
			map[event.Type][]string{event.TypeStepFinish: {"One."}, event.TypeMessageReceived: {"Two."}},
			[]string{"user: go", "assistant: I look.", "call: bash", "user: One.", "assistant: It is done.", "user: Two.", "assistant: That, too."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: bash}]", threeAnswers), nil)
			k := &talk{t: t, at: c.at}
			out := p.run(t, k.options, func(o *RunOptions) { o.Approve, o.Prompt = "all", "go" })
			want(t, out, reason.Completed)
			if d := cmp.Diff(c.want, said(out.Run)); d != "" {
				t.Errorf("conversation (-want +got):\n%s", d)
			}
			for _, s := range k.sent {
				if s.State != view.Running || !out.Run.Received(s.ID) {
					t.Errorf("message %+v: not received", s)
				}
			}
			if left, err := os.ReadDir(filepath.Join(out.Journal, "messages")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the inbox is still there: %v, %v", left, err)
			}
		})
	}
}

func TestARunThatWouldEndGoesOn(t *testing.T) {
	p := newPlace(t, agent("", "- say: It is done.\n- say: That, too.\n- say: Now all is done."), nil)
	k := &talk{t: t, at: map[event.Type][]string{event.TypeModelResponse: {"And that?"}}}
	out := p.run(t, k.options, func(o *RunOptions) { o.Prompt = "go" })
	want(t, out, reason.Completed)
	wantSaid := []string{"user: go", "assistant: It is done.", "user: And that?", "assistant: That, too."}
	if d := cmp.Diff(wantSaid, said(out.Run)); d != "" {
		t.Errorf("conversation (-want +got):\n%s", d)
	}
	if out.Result().Output != "That, too." {
		t.Errorf("output %q", out.Result().Output)
	}
}

func TestWhatARunHasNotReadIsTold(t *testing.T) {
	p := newPlace(t, agent("limits: {maxSteps: 1}\ntools: [{name: bash}]", threeAnswers), nil)
	k := &talk{t: t, at: map[event.Type][]string{event.TypeRunFinished: nil, event.TypeModelResponse: {"One."}}}
	out := p.run(t, k.options, func(o *RunOptions) { o.Approve, o.Prompt = "all", "go" })
	want(t, out, reason.MaxSteps)
	// It came in time for the closing request, which is none that goes on for ever.
	if !out.Run.Received(k.sent[0].ID) || out.Run.Steps != 2 {
		t.Errorf("%d steps, conversation %q", out.Run.Steps, said(out.Run))
	}
}

func TestWhoCannotBeToldAnything(t *testing.T) {
	p := newPlace(t, agent("", "- say: It is done."), nil)
	out := p.run(t, func(o *RunOptions) { o.Prompt = "go" })
	ended := out.Run.ID
	for name, c := range map[string]struct {
		ref, text, want string
		ended           bool
	}{
		"a run that has ended":  {ended, "Hello?", "takes no messages: it has ended", true},
		"no such run":           {"nobody-1", "Hello?", "there is no such run", false},
		"a path":                {"../" + ended, "Hello?", "no run can have this name", false},
		"nothing to say":        {ended, " \n", "it says nothing", false},
		"too much to say":       {ended, strings.Repeat("x", MessageLimit+1), "longer than 1048576 bytes", false},
		"what is no text":       {ended, "\xff", "no UTF-8", false},
		"a name without an end": {ended, "Hello?", "who sent it is no name", false},
	} {
		by := "jane"
		if name == "a name without an end" {
			by = strings.Repeat("j", 300)
		}
		_, err := Send(t.Context(), SendOptions{Ref: c.ref, State: p.state, Text: c.text, By: by})
		if _, ok := errors.AsType[*UsageError](err); !ok || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrEnded) != c.ended {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(out.Journal); len(left) == 0 || exists(filepath.Join(out.Journal, "messages")) {
		t.Errorf("a refused message left something: %v", left)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAMessageWaitsForAResume(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]\napprovals: {onAsk: Suspend}", threeAnswers), nil)
	out := p.run(t, func(o *RunOptions) { o.Approve, o.Prompt = "", "go" })
	if out.Run.Phase != view.Suspended {
		t.Fatalf("phase %s: %+v", out.Run.Phase, out.Result())
	}
	s, err := Send(t.Context(), SendOptions{Ref: out.Run.ID, State: p.state, Text: "Go on.", By: "jane"})
	if err != nil || s.State != RunSuspended {
		t.Fatalf("%+v, %v", s, err)
	}
	if again, err := Resumable(t.Context(), p.state, out.Run.ID); again || err != nil {
		t.Errorf("a message is no answer: resumable %v, %v", again, err)
	}
	out, err = Resume(t.Context(), ResumeOptions{Ref: out.Run.ID, State: p.state, Approve: "all", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	wantSaid := []string{"user: go", "assistant: I look.", "call: bash", "user: Go on.", "assistant: It is done."}
	if d := cmp.Diff(wantSaid, said(out.Run)); d != "" {
		t.Errorf("conversation (-want +got):\n%s", d)
	}
	received := out.Run.Messages[2].Parts[0]
	if received.Synthetic || out.Run.Messages[2].Role != message.RoleUser {
		t.Errorf("%+v", received)
	}
	if journal.Held(out.Journal) {
		t.Error("the journal is still held")
	}
}
