package execution

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/loop"
)

// PeopleOptions configure who answers the questions of a run. All but Terminal and
// Remembered are required.
type PeopleOptions struct {
	// Run is the id of the run, Dir its folder.
	Run, Dir string
	// Declared are the approvals of the agent, Answers those of the command line.
	Declared v1alpha1.ApprovalPolicy
	Answers  approval.Choice
	// Terminal is where a person can be asked; nil where there is none. Above are the
	// people of the run that has started this one, whose terminal it uses.
	Terminal *approval.Terminal
	Above    *People
	// Agent is the name of the agent that asks.
	Agent string
	// Of names the subagent that asks there; "" is the run's own agent.
	Of string
	// Remembered are answers that hold for further calls.
	Remembered []message.Grant
	Recorder   *Recorder
}

// People answer the questions of a run: as the command line and the agent declare, on the
// terminal, and from outside. Close them.
type People struct {
	approver approval.Approver
	// wait is how long an answer is waited for.
	wait     time.Duration
	terminal *approval.Terminal
	inquirer *inquirer
	// lent: the terminal is that of another run, which closes it.
	lent bool
}

// NewPeople returns who answers.
func NewPeople(o PeopleOptions) *People {
	if o.Above != nil {
		o.Terminal = o.Above.terminal
		if o.Declared.OnAsk == v1alpha1.OnAskSuspend { // the call that has started the run would not end
			o.Declared.OnAsk = v1alpha1.OnAskDeny
		}
	}
	with := approval.Options{OnAsk: o.Declared.OnAsk, Timeout: o.Declared.Timeout.Duration, Remote: o.remote(), Terminal: o.Terminal, Agent: o.Agent, Of: o.Of}
	p := &People{approver: o.Answers.Approver(with), wait: o.Answers.Waits(with), terminal: o.Terminal, lent: o.Above != nil}
	if o.Terminal != nil {
		p.approver = inTurn{p.approver, o.Recorder}
	}
	p.inquirer = &inquirer{recorder: o.Recorder, people: o.Answers.Questioner(with), now: time.Now, turns: map[string]chan struct{}{}}
	return p
}

// Ask asks a person the question of a running tool.
func (p *People) Ask(ctx context.Context, call string, q host.Question) (string, error) {
	return p.inquirer.ask(ctx, call, q.Text, q.Options)
}

// Inquire asks a person a question of a tool that the runner answers itself.
func (p *People) Inquire(ctx context.Context, call string, in message.Inquiry) (message.Reply, error) {
	return p.inquirer.inquire(ctx, call, in)
}

// Close releases the terminal.
func (p *People) Close() {
	if p.terminal != nil && !p.lent {
		p.terminal.Close()
	}
}

// remote reads answers from the run's inbox, and compares them with the journal.
func (o *PeopleOptions) remote() *approval.Remote {
	r := o.Recorder
	refusals := &refusals{one: "an answer", many: "answers", warn: func(text string) {
		_ = r.Record(event.Warning{Message: text}) // a journal that fails ends the run
	}}
	return &approval.Remote{
		Run: o.Run, Inbox: approval.NewInbox(o.Dir, time.Now), Now: time.Now, Memory: approval.NewMemory(o.Remembered),
		Binding: func(call string) (b string) {
			r.See(func(v *view.Run) { b = approval.Binding(v, call) })
			return b
		},
		Used: func(call, request string) (used bool) {
			r.See(func(v *view.Run) { used = v.Used(call, request) })
			return used
		},
		Refused: func(name string, why error) { refusals.add(name, why) },
	}
}

// inTurn lets the watcher show what led to a question before it is asked: both may
// write to one terminal.
type inTurn struct {
	approval.Approver
	recorder *Recorder
}

// Ask implements loop.Approver.
func (a inTurn) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	a.recorder.shown(ctx)
	return a.Approver.Ask(ctx, q)
}

// Decided implements loop.Observer.
func (a inTurn) Decided(call string, answer message.Answer) {
	if w, ok := a.Approver.(loop.Observer); ok {
		w.Decided(call, answer)
	}
}
