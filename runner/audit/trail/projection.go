// Package trail keeps the audit log of a run: the projection of its journal, which is written while the run goes on.
//
// The journal is the record; the log says the same in another form, and never more. What is
// missing of it after a crash is therefore made from the journal (Complete), and a log that
// is anything else than the projection was changed.
//
// The projection reads the lines of the journal as they are, and keeps of each open call what
// its record needs. It is not the fold (api/view) because that keeps the whole conversation:
// the log of a journal of any size is made in the memory of a few calls.
package trail

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
)

// Projection makes records from the lines of a journal. See NewProjection.
type Projection struct {
	emit func(audit.Record) error
	// refers is called with what results refer to; nil is not called.
	refers func(References)
	// version is that of the log, 0 before the first event and for a run without one.
	version int
	mac     hash.Hash

	run, agent string
	parent     *audit.Parent
	started    event.RunStarted
	secrets    map[string][]string
	functions  map[string]string

	calls map[string]*call
	begun int
	step  int
	// message is the one that is being written, "" for none.
	message   string
	decisions audit.Decisions
	changes   changes

	// time of the last line, for records of calls that are open.
	time string
	seq  int64
}

// changes are what the newest workspace.patch says.
type changes struct {
	seq     int64
	files   []string
	count   int
	unknown bool
}

// NewProjection returns a projection that passes each record to emit.
func NewProjection(emit func(audit.Record) error) *Projection {
	return &Projection{emit: emit, calls: map[string]*call{}, secrets: map[string][]string{}, functions: map[string]string{}}
}

// UnsupportedError is the error of a log that a later version has begun.
type UnsupportedError struct{ Version int }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("its audit log has version %d, and this agentctl knows versions up to %d: use the one that has executed the run, or a later one", e.Version, audit.Version)
}

// Kept reports whether the run keeps a log: runs of earlier versions do not.
func (p *Projection) Kept() bool { return p.version > 0 }

// line is the envelope of an event, as it is written. The data is what the line has from its
// data on: where it ends is looked for only if it has to be decoded.
type line struct {
	seq                int64
	time               string
	kind               event.Type
	run, message, call string
	data               []byte
}

// matters reports whether events of a type are part of the log. The others are most of a
// journal, and their data is not looked at.
func matters(t []byte) bool {
	switch event.Type(t) {
	case event.TypeRunStarted, event.TypeRunResumed, event.TypeRunFinished, event.TypeMessageReceived, event.TypeStepStart,
		event.TypeModelRequest, event.TypeModelResponse, event.TypeModelRetry, event.TypeContextCompaction,
		event.TypeToolInputStart, event.TypeToolInputEnd, event.TypePolicyDecision, event.TypeApprovalRequested, event.TypeApprovalDecided,
		event.TypeToolCall, event.TypeToolResult, event.TypeToolError, event.TypeQuestionAnswered, event.TypeToolsDescribed,
		event.TypeWorkspacePatch, event.TypeWorkspaceApplied, event.TypeRunReverted, event.TypePublishItem, event.TypeEgressConnection, event.TypeSecretResolved:
		return true
	default:
		return false
	}
}

// Line takes the next line of the journal, without its newline.
func (p *Projection) Line(text []byte) error {
	l, ok, err := parse(text)
	if err != nil {
		return fmt.Errorf("audit log: event %d: %w", p.seq+1, err)
	}
	p.seq, p.time = l.seq, l.time
	if !ok {
		return nil
	}
	if err := p.take(l); err != nil {
		return fmt.Errorf("audit log: event %d (%s): %w", l.seq, l.kind, err)
	}
	return nil
}

// parse reads the envelope. It is false for an event that is not part of the log.
func parse(text []byte) (l line, ok bool, err error) {
	err = membersUntil(text, "data", func(name string, value []byte) bool {
		switch name {
		case "seq":
			for _, d := range value {
				l.seq = l.seq*10 + int64(d-'0')
			}
		case "time":
			l.time = unquoted(value)
		case "type":
			if len(value) < 2 || value[0] != '"' {
				return false
			}
			kind := value[1 : len(value)-1]
			if ok = matters(kind); ok {
				l.kind = event.Type(kind)
			}
			return ok
		case "run":
			l.run = unquoted(value)
		case "message":
			l.message = unquoted(value)
		case "call":
			l.call = unquoted(value)
		case "data":
			l.data = value
			return false
		}
		return true
	})
	return l, ok, err
}

// decode decodes the data.
func (l *line) decode(into any) error {
	return json.Unmarshal(l.data[:valueEnd(l.data)], into)
}

// take applies one event.
func (p *Projection) take(l line) error {
	switch l.kind {
	case event.TypeRunStarted:
		return p.begin(l)
	case event.TypeRunResumed:
		return p.resume(l)
	case event.TypeRunFinished:
		return p.finish(l)
	case event.TypeStepStart:
		var d event.StepStart
		err := l.decode(&d)
		p.step = d.Step
		return err
	case event.TypeModelRequest:
		p.forget(p.message) // one that was not answered is void
		p.message = l.message
		return nil
	case event.TypeModelRetry:
		p.forget(l.message)
		return nil
	case event.TypeModelResponse, event.TypeContextCompaction:
		p.message = ""
		return nil
	case event.TypeToolsDescribed:
		return p.describe(l)
	case event.TypeWorkspacePatch:
		return p.patch(l)
	case event.TypeWorkspaceApplied, event.TypeRunReverted, event.TypePublishItem, event.TypeEgressConnection, event.TypeSecretResolved, event.TypeMessageReceived, event.TypeQuestionAnswered:
		return p.note(l)
	default:
		return p.ofCall(l)
	}
}

// digest is the keyed digest of a JSON value: "" for a run without a key. Without the key of
// the run, which is in its journal, it does not even confirm a guess of the value.
func (p *Projection) digest(value []byte) string {
	if p.mac == nil || len(value) == 0 {
		return ""
	}
	const prefix = "hmac-sha256:"
	p.mac.Reset()
	_, _ = p.mac.Write(value) // never fails
	var sum [sha256.Size]byte
	var out [len(prefix) + 2*sha256.Size]byte
	copy(out[:], prefix)
	hex.Encode(out[len(prefix):], p.mac.Sum(sum[:0]))
	return string(out[:])
}

func (p *Projection) record(l line, kind string, details func(audit.Task) audit.Details) error {
	return p.emit(audit.Record{
		Timestamp: l.time, EventType: kind, Seq: l.seq,
		Run: p.run, Agent: p.agent, Parent: p.parent, Details: details(audit.Task{TaskID: p.run}),
	})
}

// Open are the records of calls that have no result yet, as they would be made now: of a run
// that goes on, or was interrupted. They are not part of the log.
func (p *Projection) Open() []audit.Record {
	var all []audit.Record
	for _, c := range p.open() {
		all = append(all, audit.Record{
			Timestamp: p.time, EventType: eventType(c.Tool), Seq: p.seq,
			Run: p.run, Agent: p.agent, Parent: p.parent, Details: p.details(c, audit.Task{TaskID: p.run}),
		})
	}
	return all
}
