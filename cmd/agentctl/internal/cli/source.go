package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/export"
	"agentctl.dev/agentctl/runner/runs"
)

// source is where the events of a run come from: a control plane, or the journal
// in the state folder.
type source struct {
	place display.Place
	state string
	// client and run are set for a run of a control plane, ref for any other.
	client *client.Client
	run    client.Ref
	ref    string
	// id is that of the run in the state folder, "" where its journal is elsewhere.
	id string
	// seen is the object when it was looked up; nil for any other run.
	seen client.Object
	// call is the call of a word RUN/CALL.
	call string
	// export is set for a run that was exported; close removes it.
	export *export.Opened
}

// wish selects events of a source, as client.EventsOptions do.
type wish struct {
	from   int64
	follow bool
	// below also selects the events of the runs below.
	below bool
	away  func(error)
}

// events reports the events of a run until it has ended, or those so far.
func (s *source) events(ctx context.Context, w wish, see func(client.Record) error) (*client.RunEnd, error) {
	if s.client != nil {
		return s.client.Events(ctx, client.EventsOptions{Run: s.run, From: w.from, Follow: w.follow, Children: w.below, Away: w.away}, see)
	}
	o := runs.EventsOptions{Ref: s.ref, State: s.state, From: w.from, Follow: w.follow}
	if w.below {
		o.Below = func(e event.Event) error { return see(client.Record{Below: &e}) }
	}
	told, err := runs.Events(ctx, o, func(e event.Event) error { return see(client.Record{Event: &e}) })
	if err != nil {
		return nil, err
	}
	end := &client.RunEnd{Phase: told.Phase, ExitCode: -1}
	if f := told.Finished; f != nil {
		end.Reason, end.Message, end.ExitCode = f.Reason, f.Message, f.ExitCode
	}
	return end, nil
}

// name is how people call the run.
func (s *source) name() string { return cmp.Or(s.place.Object, strings.TrimPrefix(s.ref, "run/")) }

// journal is the folder of a run, "" where that is on another machine.
func (s *source) journal(id string) string {
	if s.place.Away {
		return ""
	}
	return filepath.Join(s.state, "runs", id)
}

func (s *source) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.export != nil {
		_ = s.export.Close() // in the folder for temporary files
	}
}

// unborn is the error of a run that ended before it began.
func unborn(name string, end *client.RunEnd) error {
	why := reason.Reason(end.Reason)
	err := reason.New(why, "run %s did not begin: %s", name, cmp.Or(end.Message, end.Reason, end.Phase))
	return &codeError{err, max(end.ExitCode, reason.ExitFailed)}
}
