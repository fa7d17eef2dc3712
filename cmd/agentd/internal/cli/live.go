package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"agentctl.dev/agentctl/runner/control"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/control/live"
)

// farewell is how long the readers of streams may take for their end.
const farewell = 2 * time.Second

// mountLive has the server serve what happens in the runs.
func mountLive(server *embedded.Server, p *control.Plane, state string, log *slog.Logger) (*live.Server, error) {
	l := live.New(live.Options{
		Client: p.Client(), Reader: p.Reader(), State: state, Log: log,
		RunID: control.AttemptID, Lives: p.Lives, Caller: caller,
	})
	if err := p.Tell(l.Wake); err != nil {
		return nil, err
	}
	server.Handle(l)
	return l, nil
}

// caller is who makes a request that the server has let through.
func caller(ctx context.Context) live.Caller {
	id, _ := embedded.IdentityOf(ctx)
	return live.Caller{Name: id.Name, Runs: id.Runs}
}

// unmountLive ends the streams. One whose reader does not take its end is cut off
// with its connection: the reader knows its place as well.
func unmountLive(l *live.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		log.Warn("streams are cut off", "error", fmt.Sprint(err))
	}
}
