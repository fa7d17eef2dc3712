package replay

import (
	"context"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// Toolbox checks calls again and returns the recorded results. It implements loop.Toolbox.
type Toolbox struct{ p *Player }

// Toolbox returns the tools of the replay.
func (p *Player) Toolbox() *Toolbox { return &Toolbox{p} }

// Check is the real one.
func (t *Toolbox) Check(req message.CallRequest) (message.Checked, error) {
	checked, err := t.p.Options.Check(req)
	if err == nil && checked.Coerced {
		t.p.mu.Lock()
		t.p.notes[req.ID] = "\n[the arguments were read as " + string(checked.Args) + "]"
		t.p.mu.Unlock()
	}
	return checked, err
}

// Run returns the recorded result, in its order among concurrent calls. The intent of the
// call has been compared already.
func (t *Toolbox) Run(ctx context.Context, call message.ToolCall, _ func(string)) (*message.ToolResult, error) {
	p := t.p
	place, next := p.upcoming(call.ID)
	var result message.ToolResult
	switch d := next.Data.(type) {
	case event.ToolResult:
		result = d.ToolResult
	case event.ToolError:
		result = d.ToolResult
	default:
		return nil, p.untilStopped(ctx)
	}
	if err := p.await(place); err != nil {
		return nil, err
	}
	if p.broke(&result) {
		return nil, p.breakOff(place)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	result.Text = strings.TrimSuffix(result.Text, p.notes[call.ID])
	return &result, nil
}

// breakOff is the error of a tool that could not be asked. It ends the calls beside
// it, so it waits for those that had begun by then.
func (p *Player) breakOff(place int) error {
	p.mu.Lock()
	p.tape.entries[place].sure = true
	p.tape.advance()
	last := p.tape.free()
	p.moved()
	p.mu.Unlock()
	if err := p.await(last + 1); err != nil {
		return err
	}
	return p.cause()
}

// broke reports whether a call failed because its tool could not be reached at all, which
// ended the run with the same error.
func (p *Player) broke(r *message.ToolResult) bool {
	return (r.Code == message.CodeTool || r.Code == message.CodeCancelled) && !p.stopped() &&
		p.finished.Phase == view.Failed && r.Text == p.finished.Message
}
