package runner

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/runs"
)

// approver answers the run's questions as the command line and the agent
// declare, and as people do from outside; wait is how long they are waited for.
// Release lets go of the terminal.
func (s *session) approver() (a approval.Approver, wait time.Duration, release func()) {
	declared := s.Agent.Spec.Approvals
	o := approval.Options{OnAsk: declared.OnAsk, Timeout: declared.Timeout.Duration, Attendance: s.attendance()}
	release = func() {}
	if t := s.opts.Terminal; t != nil {
		if o.Terminal = terminal(t); o.Terminal != nil {
			release = o.Terminal.Close
		}
	}
	a, wait = s.answers.Approver(o), s.answers.Waits(o)
	if o.Terminal != nil {
		a = inTurn{a, s.recorder}
	}
	s.pool.Ask = s.asker(s.answers.Questioner(o))
	return a, wait, release
}

// history is what has been said in the run, for a tool that asks: the newest
// messages as they stand in the journal, and so without secrets.
func (s *session) history(_ context.Context, most int) (said []host.Message, err error) {
	s.recorder.see(func(v *view.Run) {
		for _, m := range v.Messages {
			if text := m.Text(); text != "" {
				said = append(said, host.Message{Role: string(m.Role), Text: text})
			}
			for _, c := range m.Calls() {
				if c.Result != nil && c.Result.Text != "" {
					said = append(said, host.Message{Role: "tool", Text: c.Result.Text})
				}
			}
		}
	})
	if most > 0 && len(said) > most {
		said = said[len(said)-most:]
	}
	return said, nil
}

// attendance reads answers from the run's inbox, and holds them against what
// stands in the journal.
func (s *session) attendance() *approval.Attendance {
	refusals := &refusals{one: "an answer", many: "answers", tell: func(text string) {
		_ = s.recorder.tell(event.Warning{Message: text}) // a journal that fails says so itself
	}}
	return &approval.Attendance{
		Run: s.id, Inbox: approval.NewInbox(s.dir, time.Now), Now: time.Now, Memory: approval.NewMemory(s.view.Remembered),
		Binding: func(call string) (b string) {
			s.recorder.see(func(v *view.Run) { b = runs.Binding(v, call) })
			return b
		},
		Used: func(call, request string) (used bool) {
			s.recorder.see(func(v *view.Run) { used = v.Used(call, request) })
			return used
		},
		Refused: func(name string, why error) { refusals.add(name, why) },
	}
}

// refusals are the answers, or the messages, that a run has not taken. The inbox
// is a folder: what is written into it must not fill the journal.
type refusals struct {
	one, many string
	tell      func(text string)

	mu   sync.Mutex
	told map[string]bool
}

// refusalLimit bounds the warnings about single files.
const refusalLimit = 16

// add tells of each once, and of too many once.
func (r *refusals) add(name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n := len(r.told); {
	case r.told[name] || n > refusalLimit:
		return
	case n == refusalLimit:
		r.tell(fmt.Sprintf("more than %d %s in the run's inbox are not taken; no more is said of them", refusalLimit, r.many))
	default:
		r.tell(refused(r.one, name, why.Error()))
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[name] = true
}

// refused is how the journal tells of what is not taken.
func refused(one, name, why string) string {
	return one + " in the run's inbox is not taken (" + name + "): " + why
}

// see looks at the run as it stands in the journal.
func (r *recorder) see(look func(*view.Run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(&r.view)
}

// inTurn lets a watcher show what led to a question before it is asked: both
// may write to one terminal.
type inTurn struct {
	approval.Approver
	recorder *recorder
}

// Ask implements loop.Approver.
func (a inTurn) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	a.recorder.shown(ctx)
	return a.Approver.Ask(ctx, q)
}

// Decided implements loop.Witness.
func (a inTurn) Decided(call string, answer message.Answer) {
	if w, ok := a.Approver.(loop.Witness); ok {
		w.Decided(call, answer)
	}
}

// terminal asks on the streams of the process where they are a terminal.
func terminal(t *Terminal) *approval.Terminal {
	in, file := t.In.(*os.File)
	out, files := t.Out.(*os.File)
	if file && files {
		return approval.Stdio(in, out)
	}
	return approval.NewTerminal(t.In, t.Out, nil)
}
