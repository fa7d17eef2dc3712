package cli

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
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
}

// wish says which events of a source are meant, as client.EventsOptions do.
type wish struct {
	from   int64
	follow bool
	away   func(error)
}

// events tells of a run until it has ended, or as far as it goes now.
func (s *source) events(ctx context.Context, w wish, see func(client.Record) error) (*client.RunEnd, error) {
	if s.client != nil {
		return s.client.Events(ctx, client.EventsOptions{Run: s.run, From: w.from, Follow: w.follow, Away: w.away}, see)
	}
	told, err := runs.Events(ctx, runs.EventsOptions{Ref: s.ref, State: s.state, From: w.from, Follow: w.follow}, func(e event.Event) error {
		return see(client.Record{Event: &e})
	})
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
}

// latest is the run of the state folder that was begun last.
const latest = "@latest"

// runName reads NAME, run/NAME or run.agentctl.dev/NAME.
func runName(word string) (string, error) {
	kind, name, ok := strings.Cut(word, "/")
	if !ok {
		kind, name = "run", word
	}
	if k, err := parseKind(kind); err != nil || k != v1alpha1.KindRun {
		return "", usagef("%q is no run: it is named run/NAME", word)
	}
	if name == "" {
		return "", usagef("%q names no run", word)
	}
	return name, nil
}

// object is a run of a control plane as a source.
func (t *target) object(c *client.Client, name string) *source {
	e := c.Endpoint()
	s := &source{client: c, run: client.Ref{Kind: v1alpha1.KindRun, Namespace: t.namespace, Name: name}}
	s.place = display.Place{State: t.app.state, Object: name, Namespace: t.namespace, Home: c.Namespace(t.namespace), Context: t.context, Away: !e.Local}
	s.state, _ = statedir.Find(t.app.state) // it was found before
	return s
}

// seek finds a run: where a flag names a control plane, there; else in the state
// folder, and then in the control plane that is meant, when one runs. With objects
// it is the other way round: a run of a control plane comes first, as it does
// before one of the state folder whose id only begins like the word.
func (t *target) seek(ctx context.Context, word string, objects bool) (*source, error) {
	name, err := runName(word)
	if err != nil {
		return nil, err
	}
	if t.context != "" || t.namespace != "" {
		return t.there(ctx, name)
	}
	state, err := statedir.Find(t.app.state)
	if err != nil {
		return nil, err
	}
	s := &source{place: display.Place{State: t.app.state}, state: state, ref: name}
	here, absent := runs.Get(ctx, state, name)
	if absent == nil && !objects && (here.Name == name || name == latest) {
		return s, nil
	}
	o, err := t.running(ctx, name, absent)
	if err != nil && absent == nil {
		return s, nil
	}
	return o, err
}

// there is a run of the control plane that is meant.
func (t *target) there(ctx context.Context, name string) (*source, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	return t.object(c, name), nil
}

// running finds a run in the control plane that is meant; nothing is started for
// it. Where it is not there, the error is absent, if that is one.
func (t *target) running(ctx context.Context, name string, absent error) (*source, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if errors.Is(err, client.ErrNotRunning) && absent != nil {
		return nil, absent
	}
	if err != nil {
		return nil, err
	}
	s := t.object(c, name)
	if _, err := c.Get(ctx, s.run); err != nil {
		c.Close()
		if client.Missing(err) && absent != nil && !t.meant() {
			return nil, absent
		}
		return nil, err
	}
	return s, nil
}

// unborn is the error of a run that ended before it began.
func unborn(name string, end *client.RunEnd) error {
	why := reason.Reason(end.Reason)
	err := reason.New(why, "run %s did not begin: %s", name, cmp.Or(end.Message, end.Reason, end.Phase))
	return &codeError{err, max(end.ExitCode, reason.ExitFailed)}
}
