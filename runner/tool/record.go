package tool

import (
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

// recorders are the shipped tools that record what the commands of their calls do.
var recorders = []string{"bash", "workspace_shell"}

// records reports whether a call that is not bound is asked for what it executes.
func (r *Registry) records(d *Definition) bool {
	return r.RecordPrograms && slices.Contains(recorders, d.Shipped)
}

// asked is what a record may say that a program has sent: nothing if it was not asked for
// one, and nothing about a binding if there was none.
func asked(sent *host.Record, req *host.CallRequest) *host.Record {
	switch {
	case sent == nil || req.Binding == nil && !req.RecordPrograms:
		return nil
	case req.Binding == nil:
		only := *sent
		only.Exceeded = nil
		return &only
	}
	return sent
}

// record is the record of a reply, without secrets.
func (r *Registry) record(sent *host.Record) *message.Record {
	if sent == nil {
		return nil
	}
	clean := r.Redactor.String
	to := &message.Record{Omitted: sent.Omitted}
	for _, p := range sent.Programs {
		argv := make([]string, len(p.Argv))
		for i, word := range p.Argv {
			argv[i] = r.Redactor.Cut(word) // the last of them may be cut
		}
		to.Programs = append(to.Programs, message.Execution{Path: clean(p.Path), Argv: argv})
	}
	for _, c := range sent.Changes {
		to.Changes = append(to.Changes, message.RecordedChange{Op: clean(c.Op), Path: clean(c.Path), To: clean(c.To)})
	}
	for _, c := range sent.Connections {
		to.Connections = append(to.Connections, clean(c))
	}
	for _, e := range sent.Exceeded {
		to.Exceeded = append(to.Exceeded, message.Excess{Op: clean(e.Op), Path: clean(e.Path), To: clean(e.To), Program: clean(e.Program), Address: clean(e.Address)})
	}
	return to
}
