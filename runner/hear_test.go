package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// chatter is a disk on which each tool call and each text of a run leads somebody
// to send the run a message, up to four of one process; what was acknowledged is
// told on stdout.
func chatter(state string, write func(*os.File, []byte) (int, error)) func(*os.File, []byte) (int, error) {
	var said atomic.Int64
	return func(f *os.File, b []byte) (int, error) {
		n, err := write(f, b)
		var e event.Event
		if err != nil || !isEvents(f) || e.UnmarshalJSON(bytes.TrimSpace(b)) != nil {
			return n, err
		}
		switch e.Data.(type) {
		case event.ToolCall, event.TextEnd:
			if said.Add(1) <= 4 {
				s, err := runs.Send(context.Background(), runs.SendOptions{Ref: e.Run, State: state, Text: fmt.Sprint("behind event ", e.Seq), By: "jane"})
				if err == nil {
					_, _ = fmt.Fprintln(os.Stdout, "sent", s.ID)
				} else if !errors.Is(err, runs.ErrEnded) {
					_, _ = fmt.Fprintln(os.Stdout, "error", err)
				}
			}
		}
		return n, nil
	}
}

// talkedTo declares a run that works a little and answers whatever it is told.
func talkedTo(t *testing.T) place {
	t.Helper()
	steps := "- calls: [{tool: bash, args: {command: echo one}}]\n- calls: [{tool: bash, args: {command: echo two}}]\n" + strings.Repeat("- say: done\n", 40)
	return newPlace(t, agent("tools: [{name: bash}]", steps), nil)
}

// TestAKillLosesNoMessage kills a run that people talk to, at its writes and its
// syncs, and has it go on: whatever was acknowledged is read, once.
func TestAKillLosesNoMessage(t *testing.T) {
	f := &fate{}
	k := &talk{t: t, at: map[event.Type][]string{event.TypeToolCall: {"one", "two"}, event.TypeTextEnd: {"three", "four"}}}
	calm := talkedTo(t).run(t, func(o *RunOptions) { o.Approve, o.disk = "all", f.disk() }, k.options)
	want(t, calm, reason.Completed)
	writes, syncs := int(f.writes.Load()), int(f.syncs.Load())
	var dooms []doom
	full := os.Getenv(fullVar) == "full"
	for n := 1; n <= writes; n++ {
		for i, share := range []float64{0, 0.5, 1} {
			if full || n%4 == 0 && n/4%3 == i || n > writes-3 && i != 1 { // the end counts
				dooms = append(dooms, doom{"write", n, share})
			}
		}
	}
	for n := 1; n <= syncs; n++ { // before, and after: the message is still there
		dooms = append(dooms, doom{"sync", n, 0}, doom{"sync", n, 1})
	}
	acknowledged := atomic.Int64{}
	crashAll(t, len(dooms), func(t *testing.T, i int, times *durations) int {
		t.Helper()
		v := &victim{place: talkedTo(t), talk: true}
		killed := v.die(t, dooms[i], 0, false)
		if i%3 == 0 && killed {
			v.die(t, doom{"write", 3, 1}, 0, false)
		}
		acknowledged.Add(int64(len(v.sent)))
		out := v.goOn(t, times)
		if out == nil {
			if len(v.sent) > 0 {
				t.Errorf("killed at %v: %q were sent and nothing is left", dooms[i], v.sent)
			}
			return 1
		}
		want(t, out, reason.Completed)
		received := map[string]int{}
		for e, err := range journal.Read(t.Context(), out.Journal, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.Data.(event.MessageReceived); ok {
				received[d.ID]++
			}
		}
		for id, n := range received {
			if n != 1 {
				t.Errorf("killed at %v: message %s was received %d times", dooms[i], id, n)
			}
		}
		for _, id := range v.sent {
			if received[id] != 1 {
				t.Errorf("killed at %v: message %s was acknowledged and not received", dooms[i], id)
			}
		}
		if exists(filepath.Join(out.Journal, "messages")) || exists(filepath.Join(out.Journal, "unread")) {
			t.Errorf("killed at %v: something is left in the inbox", dooms[i])
		}
		return 1
	})
	if acknowledged.Load() < int64(len(dooms)) {
		t.Errorf("%d messages in %d runs: the test proves little", acknowledged.Load(), len(dooms))
	}
	t.Logf("%d messages", acknowledged.Load())
}

// talk sends messages to a run the very moment an event of it is written, which
// is as soon as anybody can have seen it.
type talk struct {
	t     *testing.T
	state string
	at    map[event.Type][]string // what is said at the first event of a type
	sent  []*runs.Sent
}

func (k *talk) options(o *RunOptions) {
	k.state = o.State
	write := o.disk.write
	if write == nil {
		write = (*os.File).Write
	}
	o.disk.write = func(f *os.File, b []byte) (int, error) {
		n, err := write(f, b)
		var e event.Event
		if err != nil || !isEvents(f) || e.UnmarshalJSON(bytes.TrimSpace(b)) != nil {
			return n, err
		}
		texts := k.at[e.Type()]
		delete(k.at, e.Type())
		for _, text := range texts {
			s, err := runs.Send(k.t.Context(), runs.SendOptions{Ref: e.Run, State: k.state, Text: text, By: "jane"})
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

func TestTheLastRequestOfAllHearsWhatWasSaid(t *testing.T) {
	p := newPlace(t, agent("limits: {maxSteps: 1}\ntools: [{name: bash}]", threeAnswers), nil)
	k := &talk{t: t, at: map[event.Type][]string{event.TypeModelResponse: {"One."}}}
	out := p.run(t, k.options, func(o *RunOptions) { o.Approve, o.Prompt = "all", "go" })
	want(t, out, reason.MaxSteps)
	// The closing request is none that goes on for ever.
	if !out.Run.Received(k.sent[0].ID) || out.Run.Steps != 2 {
		t.Errorf("%d steps, conversation %q", out.Run.Steps, said(out.Run))
	}
}

func TestWhatARunHasNotReadIsTold(t *testing.T) {
	p := newPlace(t, agent("", "- say: \"${string(1 / (turn - turn))}\""), nil)
	k := &talk{t: t, at: map[event.Type][]string{event.TypeModelRequest: {"One.", "Two."}}}
	out := p.run(t, k.options, func(o *RunOptions) { o.Prompt = "go" })
	want(t, out, reason.ModelError)
	told := "2 messages to the run were not read: it ended before"
	if !slices.Contains(out.Run.Warnings, told) || len(k.sent) != 2 || out.Run.Received(k.sent[0].ID) {
		t.Errorf("warnings %q, sent %v", out.Run.Warnings, k.sent)
	}
	for _, name := range []string{"messages", "unread"} {
		if exists(filepath.Join(out.Journal, name)) {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestAMessageHidesNoSecret(t *testing.T) {
	const canary = "s3cr3t-canary-value"
	t.Setenv("CANARY", canary)
	p := newPlace(t, agent("tools: [{name: bash}]", threeAnswers, `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: bash}
spec:
  env: [{name: TOKEN, valueFrom: {env: CANARY}}]
  source: {builtin: {name: bash}}
`), nil)
	file := filepath.Join(t.TempDir(), "run.cassette.jsonl")
	k := &talk{t: t, at: map[event.Type][]string{event.TypeToolCall: {"use " + canary + "\x1b[31m"}}}
	out := p.run(t, k.options, func(o *RunOptions) { o.Approve, o.Prompt, o.Record = "all", "go", file })
	want(t, out, reason.Completed)
	if d := cmp.Diff("user: use ***\x1b[31m", said(out.Run)[3]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, dir := range []string{p.state, filepath.Dir(file)} {
		for name, text := range contents(t, dir) {
			if strings.Contains(text, canary) {
				t.Errorf("%s holds the secret", name)
			}
		}
	}
}

// A recording that is made anew is told what the recorded run was told, also by a
// model that needs fewer steps.
func TestARecordingThatIsMadeAnewHearsTheSame(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]", threeAnswers), nil)
	file := filepath.Join(t.TempDir(), "run.cassette.jsonl")
	k := &talk{t: t, at: map[event.Type][]string{event.TypeToolCall: {"One.", "Two."}, event.TypeMessageReceived: {"Three."}}}
	run := p.options(k.options, func(o *RunOptions) { o.Approve, o.Prompt, o.Record = "all", "go", file })
	out, err := Run(t.Context(), run)
	if err != nil || out.Unrecorded != nil {
		t.Fatalf("%v, %+v", err, out)
	}
	told := []string{"user: go", "assistant: I look.", "call: bash", "user: One.", "user: Two.", "assistant: It is done.", "user: Three.", "assistant: That, too."}
	if d := cmp.Diff(told, said(out.Run)); d != "" {
		t.Fatalf("recorded (-want +got):\n%s", d)
	}
	again := p.options(func(o *RunOptions) { o.Approve, o.Paths = "all", nil })
	up, err := Update(t.Context(), UpdateOptions{File: file, Run: again})
	if err != nil || up.Unrecorded != nil {
		t.Fatalf("%v, %+v", err, up)
	}
	if d := cmp.Diff(told, said(up.Run)); d != "" {
		t.Errorf("anew (-want +got):\n%s", d)
	}
	write(t, filepath.Join(p.manifests, "all.yaml"), agent("tools: [{name: bash}]", strings.Repeat("- say: Done.\n", 5)))
	again.Paths = []string{p.manifests}
	if up, err = Update(t.Context(), UpdateOptions{File: file, Run: again}); err != nil || up.Unrecorded != nil {
		t.Fatalf("%v, %+v", err, up)
	}
	shorter := []string{"user: go", "assistant: Done.", "user: One.", "user: Two.", "assistant: Done.", "user: Three.", "assistant: Done."}
	if d := cmp.Diff(shorter, said(up.Run)); d != "" {
		t.Errorf("with fewer steps (-want +got):\n%s", d)
	}
	replayed, err := Replay(t.Context(), ReplayOptions{File: file})
	if err != nil || replayed.Divergence != nil {
		t.Errorf("%v, %+v", err, replayed.Divergence)
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
		"too much to say":       {ended, strings.Repeat("x", runs.MessageLimit+1), "longer than 1048576 bytes", false},
		"what is no text":       {ended, "\xff", "no UTF-8", false},
		"a name without an end": {ended, "Hello?", "who sent it is no name", false},
	} {
		by := "jane"
		if name == "a name without an end" {
			by = strings.Repeat("j", 300)
		}
		_, err := runs.Send(t.Context(), runs.SendOptions{Ref: c.ref, State: p.state, Text: c.text, By: by})
		if _, ok := errors.AsType[*reason.UsageError](err); !ok || !strings.Contains(err.Error(), c.want) || errors.Is(err, runs.ErrEnded) != c.ended {
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
	s, err := runs.Send(t.Context(), runs.SendOptions{Ref: out.Run.ID, State: p.state, Text: "Go on.", By: "jane"})
	if err != nil || s.State != runs.Suspended {
		t.Fatalf("%+v, %v", s, err)
	}
	if again, err := runs.Resumable(t.Context(), p.state, out.Run.ID); again || err != nil {
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
