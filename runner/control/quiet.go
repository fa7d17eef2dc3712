package control

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// quiet logs the messages of libraries: informational ones at level debug, since users of
// a server do not want to read of every worker that starts; all of them at that level
// while the process stops.
func quiet(l *slog.Logger, stopping *atomic.Bool) *slog.Logger {
	return slog.New(quietHandler{l.Handler(), stopping}).With("from", "controllers")
}

type quietHandler struct {
	slog.Handler
	stopping *atomic.Bool
}

func (h quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, h.lowered(l))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = h.lowered(r.Level)
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil // an error is handled without being asked for
	}
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(a), h.stopping}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name), h.stopping}
}

func (h quietHandler) lowered(l slog.Level) slog.Level {
	if l == slog.LevelInfo || h.stopping.Load() {
		return slog.LevelDebug
	}
	return l
}
