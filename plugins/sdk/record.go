package sdk

import "agentctl.dev/agentctl/plugins/sdk/toolpb"

// Record is what a call did, as the program that carried it out has observed it. A program
// that observes nothing leaves the record of its results nil.
type Record struct {
	// Programs are those that were executed, in the order of their first execution; each
	// with the same arguments is listed once.
	Programs []Program
	// Changes are those of files. One that failed for another reason than the binding of
	// the call may be among them.
	Changes []Change
	// Connections are the addresses that were connected to, such as "192.0.2.7:443",
	// "[2001:db8::7]:53/udp" or "unix:/run/x.sock".
	Connections []string
	// Exceeded is what the binding of the call did not allow, and what was denied for that.
	Exceeded []Excess
	// Omitted counts what is not in the record: what is beyond its bounds, and what could
	// not be observed.
	Omitted int
}

// Program is the execution of a program.
type Program struct {
	// Path is absolute and without links.
	Path string
	// Argv is how the program was called, its name included.
	Argv []string
}

// Change is a change of a file or folder. Its paths are absolute.
type Change struct {
	// Op is one of the operations below.
	Op   string
	Path string
	// To is the new name that a file was given.
	To string
}

// Excess is something that the binding of a call did not allow: a change of a path, a
// program, or an address.
type Excess struct {
	// Op is one of the operations below.
	Op               string
	Path, To         string
	Program, Address string
}

// The operations of a record.
const (
	// RecordWrite opens a file that is there to write to it, RecordTruncate empties it.
	RecordWrite    = "write"
	RecordTruncate = "truncate"
	// RecordCreate makes a file, a folder or a link.
	RecordCreate = "create"
	RecordRemove = "remove"
	// RecordRename gives something another name, RecordLink a further one.
	RecordRename = "rename"
	RecordLink   = "link"
	// RecordMode sets the mode of a file. No binding is about modes.
	RecordMode = "mode"
	// RecordExecute, RecordConnect and RecordListen are operations of an Excess.
	RecordExecute = "execute"
	RecordConnect = "connect"
	RecordListen  = "listen"
)

// message is the record as it is sent.
func (r *Record) message() *toolpb.Record {
	if r == nil {
		return nil
	}
	m := &toolpb.Record{Omitted: int64(r.Omitted)}
	for _, p := range r.Programs {
		argv := make([]string, len(p.Argv))
		for i, a := range p.Argv {
			argv[i] = valid(a)
		}
		m.Programs = append(m.Programs, &toolpb.Program{Path: valid(p.Path), Argv: argv})
	}
	for _, c := range r.Changes {
		m.Changes = append(m.Changes, &toolpb.Change{Op: valid(c.Op), Path: valid(c.Path), To: valid(c.To)})
	}
	for _, c := range r.Connections {
		m.Connections = append(m.Connections, valid(c))
	}
	for _, e := range r.Exceeded {
		m.Exceeded = append(m.Exceeded, &toolpb.Excess{Op: valid(e.Op), Path: valid(e.Path), To: valid(e.To), Program: valid(e.Program), Address: valid(e.Address)})
	}
	return m
}
