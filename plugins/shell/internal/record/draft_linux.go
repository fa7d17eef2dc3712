package record

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// Bounds of a record. What is beyond them is counted.
const (
	maxPrograms    = 256
	maxChanges     = 512
	maxConnections = 128
	maxExceeded    = 128
	// maxText bounds all texts of a record together.
	maxText = 64 << 10
)

// draft is a record in the making. What is in it already is added once.
type draft struct {
	record sdk.Record
	known  map[string]bool
	text   int
}

func newDraft() *draft { return &draft{known: map[string]bool{}} }

// add adds an attempt, and reports whether it is one that the rules refuse and that is new.
func (d *draft) add(a *attempt) bool {
	key := strings.Join(append([]string{a.op, a.path, a.to, a.address}, a.argv...), "\x00")
	if a.refused {
		key = "refused\x00" + key
	}
	if d.known[key] {
		return false
	}
	r := &d.record
	full := len(r.Changes) >= maxChanges
	switch {
	case a.refused:
		full = len(r.Exceeded) >= maxExceeded
	case a.op == sdk.RecordExecute:
		full = len(r.Programs) >= maxPrograms
	case a.address != "":
		full = len(r.Connections) >= maxConnections
	}
	// What was refused has a room of its own: it must not be possible to fill it with
	// something else.
	size := len(key)
	if most := maxText / 2; full || !a.refused && d.text+size > most || a.refused && d.text+size > maxText {
		r.Omitted++
		return false
	}
	d.text += size
	d.known[key] = true
	if a.cut {
		r.Omitted++
	}
	switch {
	case a.refused && a.op == sdk.RecordExecute:
		r.Exceeded = append(r.Exceeded, sdk.Excess{Op: a.op, Program: a.path})
	case a.refused && a.address != "":
		r.Exceeded = append(r.Exceeded, sdk.Excess{Op: a.op, Address: a.address})
	case a.refused:
		r.Exceeded = append(r.Exceeded, sdk.Excess{Op: a.op, Path: a.path, To: a.to})
	case a.op == sdk.RecordExecute:
		r.Programs = append(r.Programs, sdk.Program{Path: a.path, Argv: slices.Clone(a.argv)})
	case a.address != "":
		r.Connections = append(r.Connections, a.address)
	default:
		r.Changes = append(r.Changes, sdk.Change{Op: a.op, Path: a.path, To: a.to})
	}
	return a.refused
}
