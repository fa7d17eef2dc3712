package replay

import (
	"crypto/sha256"
	"encoding/hex"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Journal is the memory of a replay. It implements loop.Journal: an event that
// is not the recorded one is refused, which ends the run.
type Journal struct{ p *Player }

// Journal returns the journal of the replay.
func (p *Player) Journal() *Journal { return &Journal{p} }

// Append holds an event against the recording and returns it as recorded.
func (j *Journal) Append(e event.Event) (event.Event, error) {
	p := j.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.diverged != nil {
		return e, p.diverged
	}
	place := p.tape.next(e.Call)
	if place < 0 {
		return e, p.diverge(p.surplus(e))
	}
	recorded := &p.tape.entries[place]
	if missingThen(e, recorded.Event) {
		return e, nil
	}
	if d := p.compare(recorded, e, recorded.Event); d != nil {
		return e, d
	}
	p.tape.pass(e.Call)
	if d, ok := recorded.Data.(event.PolicyDecision); ok {
		p.decisions[e.Call] = d.Decision
	}
	p.clock.at(recorded.Time)
	p.emit()
	if p.tape.stop >= 0 && p.tape.reached(p.tape.stop+1) {
		p.tape.stop = -1
		p.cancel(p.cause())
	}
	p.moved()
	played := recorded.Event
	played.Message, played.Part, played.Prev = e.Message, e.Part, ""
	return played, nil
}

// missingThen reports whether an event is the warning about a tool that the agent
// does not have, and the recording was made by a version that did not write one.
func missingThen(now, recorded event.Event) bool {
	if now.Type() != event.TypeWarning || now.Call == "" {
		return false
	}
	failed, ok := recorded.Data.(event.ToolError)
	return ok && failed.Code == message.CodeUnknownTool
}

// Sync does nothing: a replay is not stored.
func (j *Journal) Sync() error { return nil }

// PutBlob returns the id under which the recorded run has kept a text.
func (j *Journal) PutBlob(b []byte) (string, error) {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
