package host

import "agentctl.dev/agentctl/plugins/sdk/toolpb"

// Record is what a call did, as its program claims.
type Record struct {
	Programs    []Execution
	Changes     []RecordedChange
	Connections []string
	Exceeded    []Excess
	// Omitted counts what the program has left out, and what was beyond the bounds here.
	Omitted int
}

// Execution is a program that was executed.
type Execution struct {
	Path string
	Argv []string
}

// RecordedChange is a change of a file, with its new name where it has one.
type RecordedChange struct{ Op, Path, To string }

// Excess is something that the binding of the call did not allow.
type Excess struct{ Op, Path, To, Program, Address string }

// Bounds of a record, whatever a program sends.
const (
	maxPrograms, maxChanges, maxConnections, maxExceeded = 256, 512, 128, 128
	maxArgv                                              = 64
	// maxRecordText bounds all texts of a record together.
	maxRecordText = 64 << 10
)

// record takes what is within the bounds and counts the rest.
func record(w *toolpb.Record) *Record {
	if w == nil {
		return nil
	}
	r := &Record{Omitted: int(min(max(w.GetOmitted(), 0), 1<<31-1))}
	room := maxRecordText
	// fits reports whether one more of n entries with these texts is within the bounds.
	fits := func(n, most int, texts ...string) bool {
		size := 0
		for _, s := range texts {
			size += len(s)
		}
		if n >= most || size > room {
			r.Omitted++
			return false
		}
		room -= size
		return true
	}
	for _, e := range w.GetExceeded() { // first: it must not be possible to fill the room with something else
		if fits(len(r.Exceeded), maxExceeded, e.GetOp(), e.GetPath(), e.GetTo(), e.GetProgram(), e.GetAddress()) {
			r.Exceeded = append(r.Exceeded, Excess{Op: e.GetOp(), Path: e.GetPath(), To: e.GetTo(), Program: e.GetProgram(), Address: e.GetAddress()})
		}
	}
	for _, p := range w.GetPrograms() {
		argv := p.GetArgv()[:min(len(p.GetArgv()), maxArgv)]
		if fits(len(r.Programs), maxPrograms, append([]string{p.GetPath()}, argv...)...) {
			r.Programs = append(r.Programs, Execution{Path: p.GetPath(), Argv: argv})
			if len(argv) < len(p.GetArgv()) {
				r.Omitted++
			}
		}
	}
	for _, c := range w.GetChanges() {
		if fits(len(r.Changes), maxChanges, c.GetOp(), c.GetPath(), c.GetTo()) {
			r.Changes = append(r.Changes, RecordedChange{Op: c.GetOp(), Path: c.GetPath(), To: c.GetTo()})
		}
	}
	for _, c := range w.GetConnections() {
		if fits(len(r.Connections), maxConnections, c) {
			r.Connections = append(r.Connections, c)
		}
	}
	return r
}
