// Package audit verifies, exports and attests what runs have recorded, for programs that execute no run.
//
//   - Verify compares a journal with its hash chain and its head, each blob with its name,
//     and the audit log with the journal, of which it is a projection (audit/trail).
//   - Export passes on the records of a run.
//   - Sign makes a receipt of a run: an in-toto statement in a DSSE envelope; CheckReceipt
//     compares one with its signature, the journal, and the files.
//
// A chain alone finds accidents: who owns the files can write another one. Only a head that
// is kept elsewhere shows that, such as that of a receipt or of a Run object.
package audit

import (
	"errors"
	"fmt"

	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
)

// Kinds of what can be verified.
const (
	KindJournal  = "journal"
	KindReceipt  = "receipt"
	KindCassette = "cassette"
)

// Verdict is what a verification found.
type Verdict struct {
	// OK is true if nothing was changed.
	OK bool `json:"ok"`
	// Kind is journal, receipt or cassette; Path is what was read.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Run is its id, "" where that is not known.
	Run string `json:"run"`
	// Problems are what is not as it was written; Notes are what limits the verdict.
	Problems []Problem `json:"problems"`
	Notes    []string  `json:"notes"`
	// Journal, Blobs and AuditLog of a run; Receipt of a receipt.
	Journal  *JournalVerdict `json:"journal,omitempty"`
	Blobs    *BlobVerdict    `json:"blobs,omitempty"`
	AuditLog *LogVerdict     `json:"auditLog,omitempty"`
	Receipt  *ReceiptVerdict `json:"receipt,omitempty"`
	// Children are the runs that calls of this one have started.
	Children []*Verdict `json:"children,omitempty"`
}

// Problem is the first place that is not as it was written.
type Problem struct {
	Problem string `json:"problem"`
	// File relative to the run's folder, Line from 1 and Byte from 0 in it; Line is 0 where
	// the whole file is meant.
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
	Byte int64  `json:"byte"`
	// Expected is what belongs there, Found what is there.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
}

// String is the problem on one line.
func (p Problem) String() string {
	text := p.Problem
	switch {
	case p.File != "" && p.Line > 0:
		text = fmt.Sprintf("%s:%d: byte %d: %s", p.File, p.Line, p.Byte, text)
	case p.File != "":
		text = p.File + ": " + text
	}
	if p.Expected != "" || p.Found != "" {
		text += fmt.Sprintf("; expected %s, found %s", p.Expected, p.Found)
	}
	return text
}

// JournalVerdict is what the chain of a journal shows.
type JournalVerdict struct {
	Events int64    `json:"events"`
	Bytes  int64    `json:"bytes"`
	Files  []string `json:"files"`
	// Head is the hash of the last event.
	Head string `json:"head"`
	// Closed is true if the journal was closed in order: then head.json vouches for all
	// events, else for those up to Vouched.
	Closed  bool  `json:"closed"`
	Vouched int64 `json:"vouched"`
	// InProgress is true if a process writes it.
	InProgress bool `json:"inProgress"`
	// Torn are the bytes of an incomplete last line.
	Torn int64 `json:"torn,omitempty"`
	// Anchor is the number of the event that the head from outside names; 0 without one.
	Anchor int64 `json:"anchor,omitempty"`
}

// BlobVerdict counts the blobs that have the content of their name.
type BlobVerdict struct {
	Checked int   `json:"checked"`
	Bytes   int64 `json:"bytes"`
}

// LogVerdict is what the audit log is.
type LogVerdict struct {
	// State is complete, incomplete (the run is in progress, or was interrupted), completed
	// (by this verification), changed, or none (a run of an earlier version).
	State   string `json:"state"`
	Records int64  `json:"records"`
	// Added records were missing.
	Added int64 `json:"added,omitempty"`
}

// States of an audit log.
const (
	LogComplete   = "complete"
	LogIncomplete = "incomplete"
	LogCompleted  = "completed"
	LogChanged    = "changed"
	LogNone       = "none"
)

// ReceiptVerdict is what a receipt says, and what it was compared with.
type ReceiptVerdict struct {
	// KeyID is that of the key.
	KeyID string `json:"keyID"`
	// Signed is true if the signature is that of the key; nothing else is read before.
	Signed bool `json:"signed"`
	// Journal is true if the predicate was compared with a journal, Files the number of
	// subjects that were compared with files.
	Journal bool `json:"journal"`
	Files   int  `json:"files"`
}

// Changed reports whether an error is that a journal is not as it was written.
func Changed(err error) bool {
	_, changed := errors.AsType[*journal.CorruptError](err)
	return changed
}

func (v *Verdict) add(p Problem) { v.Problems = append(v.Problems, p) }

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// settle says whether something was changed.
func (v *Verdict) settle() {
	v.OK = len(v.Problems) == 0
	for _, c := range v.Children {
		v.OK = v.OK && c.OK
	}
}

// find takes an error of reading for a problem, if it is that something was changed.
func (v *Verdict) find(err error) (found bool) {
	if c, ok := errors.AsType[*journal.CorruptError](err); ok {
		v.add(Problem{File: c.File, Line: int64(c.Line), Byte: c.Offset, Problem: c.Problem, Expected: c.Expected, Found: c.Found})
		return true
	}
	if d, ok := errors.AsType[*trail.DifferenceError](err); ok {
		v.add(Problem{File: logName, Line: d.Line, Byte: d.Offset, Problem: "the audit log is not what the journal says", Expected: d.Expected, Found: d.Found})
		return true
	}
	return false
}
