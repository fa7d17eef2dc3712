package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/control"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/control/runapi"
)

// farewell is how long the readers of streams may take for their end.
const farewell = 2 * time.Second

// mountLive has the server serve what happens in the runs.
func mountLive(server *embedded.Server, p *control.Plane, state string, log *slog.Logger, selfApproval func() bool) (*runapi.Server, error) {
	l := runapi.New(runapi.Options{
		Client: p.Client(), Reader: p.Reader(), State: state, Log: log,
		RunID: control.AttemptID, Executes: p.Executes, Caller: caller, SelfApproval: selfApproval, Audit: note,
	})
	if err := p.Notify(l.Wake); err != nil {
		return nil, err
	}
	server.Handle(l)
	return l, nil
}

// note adds to the audit record of a request.
func note(ctx context.Context, about runapi.Audited, value string) {
	embedded.Note(ctx, map[runapi.Audited]string{runapi.AuditedRun: embedded.AuditRun, runapi.AuditedDecision: embedded.AuditDecision}[about], value)
}

// startedBy is the identity that began a run, as the API server of this process
// has written it.
func startedBy(run *v1alpha1.Run) string { return run.Annotations[v1alpha1.AnnotationStartedBy] }

// soleIdentity reports whether there is at most one identity that may begin runs or
// decide: nobody else could approve its calls.
func soleIdentity(tokens *embedded.Tokens) bool {
	ids, err := tokens.List()
	if err != nil {
		return false
	}
	n := 0
	for _, id := range ids {
		if id.Role != embedded.RoleViewer && id.Role != embedded.RoleWorker {
			n++
		}
	}
	return n <= 1
}

// caller is who makes a request that the server has let through.
func caller(ctx context.Context) runapi.Caller {
	id, _ := embedded.IdentityOf(ctx)
	return runapi.Caller{Name: id.Name, Runs: id.Runs, NoPaths: id.Role == embedded.RoleRunner}
}

// unmountLive ends the streams. One whose reader does not take its end is cut off
// with its connection: the reader knows its place as well.
func unmountLive(l *runapi.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		log.Warn("streams are cut off", "error", fmt.Sprint(err))
	}
}
