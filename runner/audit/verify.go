package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/statedir"
)

const logName = audit.FileName

// Head is the head of a journal that is kept elsewhere.
type Head struct {
	// Hash of an event, as sha256:<hex>; "" is none.
	Hash string
	// Seq is its number; 0 is not known.
	Seq int64
	// From is where it was kept, for errors.
	From string
}

// VerifyOptions say what is compared. Dir is required.
type VerifyOptions struct {
	// Dir is the folder of a run.
	Dir string
	// Run is the id that the journal must have; "" is any.
	Run string
	// Head must be that of an event of the journal.
	Head Head
	// Alone leaves out the runs below.
	Alone bool
}

// Verify compares a run with what was written of it: its journal byte by byte, its blobs and
// its audit log, and the same of the runs below it that are in the same folder of runs. What
// a crash has kept from the audit log is added to it.
//
// The error is set where something cannot be read; what was changed is in the Verdict.
func Verify(ctx context.Context, o VerifyOptions) (*Verdict, error) {
	return verify(ctx, o, map[string]bool{})
}

// damagedWarning begins the warning of a run that was continued although the end of its
// journal was damaged (runs.Damaged).
const damagedWarning = `"message":"JournalDamaged: `

// maxDepth of a tree of runs is above what any has.
const maxDepth = 64

func verify(ctx context.Context, o VerifyOptions, above map[string]bool) (*Verdict, error) {
	c := &check{VerifyOptions: o, v: &Verdict{Kind: KindJournal, Path: o.Dir, Problems: []Problem{}, Notes: []string{}}}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	if !o.Alone {
		if err := c.below(ctx, above); err != nil {
			return nil, err
		}
	}
	c.v.settle()
	return c.v, nil
}

// check verifies one run.
type check struct {
	VerifyOptions
	v *Verdict

	log      *trail.Log
	line     []byte
	made     int64 // records of the projection
	bytes    int64
	anchor   int64 // the event whose hash is that of the head from outside
	ended    bool  // the run has ended
	after    *journal.Line
	refs     map[string]int64
	changes  []string
	damaged  []int64
	children []*message.ChildRun
	blobs    blobs
}

func (c *check) run(ctx context.Context) (err error) {
	c.refs, c.blobs.dir = map[string]int64{}, c.Dir
	// The log first: what it says is in the journal already.
	c.log, err = trail.OpenLog(c.Dir)
	if errors.Is(err, statedir.ErrNotRegular) {
		c.v.add(Problem{File: logName, Problem: "the audit log is not a regular file", Expected: "a file", Found: "something else"})
		c.log, err = &trail.Log{Absent: true}, nil
	}
	if err != nil {
		return err
	}
	defer c.log.Close() //nolint:errcheck // nothing was written
	var wg sync.WaitGroup
	wg.Go(func() { c.blobs.read(ctx) })
	report, kept, err := c.journal(ctx)
	wg.Wait()
	if err != nil {
		return err
	}
	if c.blobs.err != nil {
		return c.blobs.err
	}
	held := journal.Held(c.Dir)
	c.v.Run = report.Run
	c.v.Journal = &JournalVerdict{
		Events: report.Events, Bytes: c.bytes, Files: report.Files, Head: report.Head, Closed: report.Anchored, Vouched: report.Vouched, InProgress: held, Anchor: c.anchor,
	}
	if report.Torn != nil {
		c.v.Journal.Torn = report.Torn.Bytes
		c.v.note("the last line is incomplete (%d bytes): a crash has left it; agentctl resume cuts it off", report.Torn.Bytes)
	}
	whole := len(c.v.Problems) == 0
	if whole {
		c.ends(report, held)
	}
	c.judgeBlobs(held)
	if whole {
		return c.judgeLog(ctx, report, kept, held)
	}
	c.v.AuditLog = &LogVerdict{State: LogIncomplete, Records: c.log.Records}
	return nil
}

// journal reads the journal and compares the log with it. A line is visited before the chain
// has vouched for it: what is wrong with its content counts only where the chain is whole.
func (c *check) journal(ctx context.Context) (journal.Report, bool, error) {
	p := trail.NewProjection(c.record)
	p.OnResults(c.note)
	var content error
	report, err := journal.Check(ctx, c.Dir, func(l journal.Line) error {
		c.bytes += int64(len(l.Text)) + 1
		if c.Head.Hash != "" && l.Prev == c.Head.Hash {
			c.anchor = l.Seq - 1
		}
		if content != nil {
			return nil //nolint:nilerr // the first is kept, and the chain is checked to its end
		}
		if content = c.refer(l); content == nil {
			content = p.Line(l.Text)
		}
		if content != nil {
			content = located(l, content)
		}
		return nil
	})
	if c.Head.Hash != "" && report.Head == c.Head.Hash {
		c.anchor = report.Events
	}
	if err == nil && content == nil {
		content = c.log.End()
	}
	if err == nil {
		err = content
	}
	if later, ok := errors.AsType[*trail.UnsupportedError](err); ok {
		return report, false, later
	}
	switch {
	case err == nil, c.v.find(err):
		return report, p.Kept(), nil
	case len(report.Files) == 0 && report.Events == 0 && errors.Is(err, fs.ErrNotExist):
		return report, false, reason.Usagef("%s: %w", c.Dir, err)
	}
	return report, p.Kept(), err
}

// located is what is wrong with the content of a line.
func located(l journal.Line, err error) error {
	if _, ok := errors.AsType[*trail.DifferenceError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*trail.UnsupportedError](err); ok {
		return err
	}
	return &journal.CorruptError{File: l.File, Line: l.Number, Offset: l.Offset, Problem: err.Error(), Expected: "an event of type " + string(l.Type), Found: "other data"}
}

func (c *check) record(r audit.Record) (err error) {
	c.made++
	if c.line, err = audit.Append(c.line[:0], r); err != nil {
		return err
	}
	return c.log.Match(c.line)
}

// refer notes what an event refers to, and what comes behind the end of the run.
func (c *check) refer(l journal.Line) error {
	kind := event.Type(l.Type)
	if kind == event.TypeWarning && bytes.Contains(l.Text, []byte(damagedWarning)) {
		c.damaged = append(c.damaged, l.Seq)
	}
	if kind == event.TypeRunResumed && c.ended {
		var e event.Event
		if err := e.UnmarshalJSON(l.Text); err != nil {
			return err
		}
		if d, _ := e.Data.(event.RunResumed); d.Turn != nil {
			c.ended = false // the conversation goes on
		}
	}
	if c.ended && c.after == nil && !slices.Contains(afterEnd, kind) {
		c.after = &journal.Line{Seq: l.Seq, File: l.File, Number: l.Number, Offset: l.Offset, Type: slices.Clone(l.Type)}
	}
	if kind == event.TypeRunFinished {
		var e event.Event
		if err := e.UnmarshalJSON(l.Text); err != nil {
			return err
		}
		d, _ := e.Data.(event.RunFinished)
		c.ended = d.Phase != view.Suspended
	}
	r, err := trail.Refers(l)
	c.note(r)
	return err
}

// afterEnd are the events that may follow the end of a run: what a person does with it.
var afterEnd = []event.Type{event.TypeWorkspaceApplied, event.TypePublishItem, event.TypeWorkspacePatch, event.TypeRunReverted}

// note keeps what an event refers to.
func (c *check) note(r trail.References) {
	for _, id := range r.Blobs {
		c.refs[id] = r.Seq
	}
	if r.Change != "" {
		c.changes = append(c.changes, r.Change)
	}
	if r.Child != nil && r.Child.Run != "" {
		c.children = append(c.children, r.Child)
	}
}

// ends judges the end of a journal whose chain is whole.
func (c *check) ends(report journal.Report, held bool) {
	if report.Events == 0 {
		c.v.note("the journal holds no events: the run was stopped before it began")
	}
	if c.Run != "" && report.Run != "" && report.Run != c.Run {
		c.v.add(Problem{Problem: "the journal is that of another run", Expected: c.Run, Found: report.Run})
	}
	if c.after != nil {
		c.v.add(Problem{
			File: c.after.File, Line: int64(c.after.Number), Byte: c.after.Offset, Problem: fmt.Sprintf("event %d follows the end of the run", c.after.Seq),
			Expected: "nothing, " + string(event.TypeWorkspaceApplied) + " or " + string(event.TypePublishItem), Found: string(c.after.Type),
		})
	}
	for _, seq := range c.damaged {
		c.v.note("event %d reports that the end of the journal was damaged: events before it are lost", seq)
	}
	if kept, _ := filepath.Glob(filepath.Join(c.Dir, trail.Aside)); len(kept) > 0 {
		c.v.note("%s: an audit log that was changed, and made again by a resume", filepath.Base(kept[0]))
	}
	if !report.Anchored && !held && report.Events > 0 {
		c.v.note("the journal was not closed: head.json vouches for the events up to %d of %d", report.Vouched, report.Events)
	}
	h := c.Head
	switch {
	case h.Hash == "":
	case c.anchor == 0:
		c.v.add(Problem{Problem: "no event has the hash that " + h.From + " names: the journal was cut, or written again", Expected: h.Hash, Found: report.Head})
	case h.Seq > 0 && h.Seq != c.anchor:
		c.v.add(Problem{Problem: h.From + " names another event with this hash", Expected: fmt.Sprintf("event %d", h.Seq), Found: fmt.Sprintf("event %d", c.anchor)})
	case c.anchor < report.Events:
		c.v.note("%s vouches for the events up to %d of %d", h.From, c.anchor, report.Events)
	}
}

// judgeBlobs compares the blobs with their names, and looks for those that are missing.
func (c *check) judgeBlobs(held bool) {
	b := &c.blobs
	c.v.Blobs = &BlobVerdict{Checked: len(b.whole), Bytes: b.bytes}
	c.v.Problems = append(c.v.Problems, b.problems...)
	for _, id := range c.changes {
		c.content(id)
	}
	var missing []string
	for id := range c.refs {
		if b.whole[id] || b.changed[id] {
			continue
		}
		if _, err := journal.ReadBlob(c.Dir, id); err != nil { // else it was stored meanwhile
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	for _, id := range missing {
		c.v.add(Problem{File: blobFile(id), Problem: fmt.Sprintf("event %d names a blob that is missing", c.refs[id]), Expected: id, Found: "no file"})
	}
	if b.temporary > 0 && !held {
		c.v.note("%d half-written files are in blobs/: a crash has left them", b.temporary)
	}
}

// content notes the blobs that a change names.
func (c *check) content(id string) {
	change, err := readChange(c.Dir, id)
	if err != nil {
		return // it is missing, or has another content, which is a problem already
	}
	seq := c.refs[id]
	for _, f := range change.Files {
		if f.New != nil && f.New.Blob != "" {
			c.refs[f.New.Blob] = seq
		}
	}
}

// judgeLog says what the log is, and completes one that a crash has left incomplete.
func (c *check) judgeLog(ctx context.Context, report journal.Report, kept, held bool) error {
	l, state := c.log, &LogVerdict{State: LogComplete, Records: c.log.Records}
	c.v.AuditLog = state
	end := fmt.Sprintf("%d records", c.made)
	switch {
	case !kept:
		state.State, state.Records = LogNone, 0
		if !l.Absent {
			c.v.add(Problem{File: logName, Problem: "the run keeps no audit log", Expected: "no file", Found: fmt.Sprintf("%d records", l.Records)})
			state.State = LogChanged
		} else if report.Events > 0 {
			c.v.note("the run was begun by an earlier version, which keeps no audit log; agentctl audit export makes its records")
		}
	case l.Extra > 0 && !held:
		state.State = LogChanged
		c.v.add(Problem{
			File: logName, Line: l.Records + 1, Byte: l.Size, Expected: "the end of the file", Found: fmt.Sprintf("%d more bytes", l.Extra),
			Problem: "bytes follow the records that the journal has: they were appended, or a crash of the machine took events from the journal",
		})
	case l.Missing == 0:
	case report.Anchored:
		state.State = LogChanged
		found := fmt.Sprintf("%d records", l.Records)
		if l.Absent {
			found = "no file"
		}
		c.v.add(Problem{File: logName, Line: l.Records + 1, Byte: l.Size, Problem: "the audit log was cut: the journal was closed with a complete one", Expected: end, Found: found})
	case held:
		state.State = LogIncomplete
	default:
		return c.complete(ctx, state)
	}
	return nil
}

// complete adds what a crash has kept from the log.
func (c *check) complete(ctx context.Context, state *LogVerdict) error {
	state.State, state.Added = LogIncomplete, c.log.Missing
	err := journal.Locked(ctx, c.Dir, c.v.Run, func() error {
		_, err := trail.Complete(ctx, c.Dir)
		return err
	})
	if _, held := errors.AsType[*journal.HeldError](err); held {
		state.Added = 0
		return nil // which completes it
	}
	if err != nil {
		c.v.note("the audit log lacks %d records, which a crash has kept from it, and cannot be written: %v", c.log.Missing, err)
		state.Added = 0
		return nil
	}
	state.State, state.Records = LogCompleted, c.made
	c.v.note("%d records were added to the audit log: a crash had kept them from it", state.Added)
	return nil
}

// below verifies the runs that calls have started, and that are in the same folder of runs.
func (c *check) below(ctx context.Context, above map[string]bool) error {
	if len(above) >= maxDepth || above[c.Dir] {
		return nil
	}
	above[c.Dir] = true
	defer delete(above, c.Dir)
	for _, child := range c.children {
		dir := filepath.Join(filepath.Dir(c.Dir), filepath.Base(child.Run))
		if !isRun(dir) {
			c.v.note("run %s, which a call has started, is not next to this one: it was not looked at", child.Run)
			continue
		}
		head := Head{Hash: child.Head, From: "the journal of run " + c.v.Run}
		v, err := verify(ctx, VerifyOptions{Dir: dir, Run: child.Run, Head: head}, above)
		if err != nil {
			return err
		}
		c.v.Children = append(c.v.Children, v)
	}
	return nil
}

// ParseHead reads a head from outside: sha256:HEX, or SEQ:sha256:HEX.
func ParseHead(text string) (Head, error) {
	h := Head{Hash: text, From: "the given head"}
	if seq, hash, ok := strings.Cut(text, ":sha256:"); ok {
		if err := json.Unmarshal([]byte(seq), &h.Seq); err != nil || h.Seq < 1 {
			return h, reason.Usagef("head %q: %q is not the number of an event", text, seq)
		}
		h.Hash = "sha256:" + hash
	}
	if hex, ok := strings.CutPrefix(h.Hash, "sha256:"); !ok || len(hex) != 2*sha256.Size || strings.Trim(hex, "0123456789abcdef") != "" {
		return h, reason.Usagef("head %q: a head is sha256: and 64 hexadecimal digits", text)
	}
	return h, nil
}
