package cli

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

// handEvents hands the events of a run to see, of the newest attempt last, and returns
// how the run stands and where it was found. A signal ends it. Events of runs below go to
// below; nil: they are left out.
func (a *app) handEvents(ctx context.Context, t *target, word string, w wish, see, below func(event.Event) error) (*client.RunEnd, *source, error) {
	ctx, signals := watch(ctx, func(int) {})
	defer signals.stop()
	src, err := t.openWord(ctx, word)
	if err != nil {
		return nil, nil, letGo(ctx, err)
	}
	defer src.close()
	end, err := readEvents(ctx, src, w, func(text string) { display.Notice(a.stderr(), text) }, see, below)
	if err != nil {
		return nil, nil, letGo(ctx, err)
	}
	return end, src, nil
}

// readEvents is handEvents for a run that is found. What happens to the connection, and
// what the run waits for, is said once.
func readEvents(ctx context.Context, src *source, w wish, notice func(string), see, below func(event.Event) error) (*client.RunEnd, error) {
	w.below = below != nil
	said := ""
	say := func(text string) {
		if text != said {
			said = text
			notice(text)
		}
	}
	w.away = func(err error) { say(err.Error() + "; trying again") }
	return src.events(ctx, w, func(r client.Record) error {
		switch {
		case r.Event != nil:
			said = ""
			return see(*r.Event)
		case r.Below != nil:
			return below(*r.Below)
		case r.Waiting != nil:
			if text := waiting(src, r.Waiting); w.follow && text != "" {
				say(text)
			}
		case r.Attempt > 0:
			say(attempt(src, r.Attempt))
		}
		return nil
	})
}
