package embedded

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// library returns a logger for libraries. Their information and warnings are of
// use only for debugging, so they are logged one or two levels lower. Errors
// stay errors until stopping: work that a library could not finish then was
// asked to end.
func library(l *slog.Logger, name string, stopping *atomic.Bool) *slog.Logger {
	return slog.New(lowered{l.Handler(), stopping}).With("component", name)
}

// lowered is a handler that lowers the level of a library's entries.
type lowered struct {
	slog.Handler
	stopping *atomic.Bool
}

// harmless are errors that can be ignored.
var harmless = []string{
	"failed to update storage version",              // of a database that is new
	"setting up serving from embedded etcd failed.", // because it is being closed
}

func (h lowered) lower(level slog.Level, message string) slog.Level {
	switch {
	case h.stopping.Load(), slices.Contains(harmless, message):
		return min(level, slog.LevelDebug)
	case level >= slog.LevelError:
		return level
	case level >= slog.LevelInfo:
		return slog.LevelDebug
	default:
		return level - 4
	}
}

func (h lowered) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, h.lower(level, ""))
}

func (h lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level = h.lower(r.Level, r.Message)
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h lowered) WithAttrs(a []slog.Attr) slog.Handler {
	return lowered{h.Handler.WithAttrs(a), h.stopping}
}

func (h lowered) WithGroup(n string) slog.Handler {
	return lowered{h.Handler.WithGroup(n), h.stopping}
}

// zapLogger passes the log of a library that uses zap to the server's log. A
// fatal entry of zap would end the process from inside a library; it becomes a
// panic, which a start recovers from.
func zapLogger(l *slog.Logger) *zap.Logger {
	return zap.New(zapCore{l.Handler()}, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// zapCore is the part of a zap logger that writes.
type zapCore struct{ out slog.Handler }

func zapLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// Enabled also accepts panics, which zap raises only for entries that are
// written.
func (c zapCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.DPanicLevel || c.out.Enabled(context.Background(), zapLevel(l))
}

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{c.out.WithAttrs(attrs(fields))}
}

func (c zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, zapLevel(e.Level), e.Message, 0)
	r.AddAttrs(attrs(fields)...)
	return c.out.Handle(context.Background(), r)
}

func (zapCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []slog.Attr {
	if len(fields) == 0 {
		return nil
	}
	enc := zapcore.NewMapObjectEncoder()
	list := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		f.AddTo(enc)
		if v, ok := enc.Fields[f.Key]; ok {
			list = append(list, slog.Any(f.Key, v))
		}
	}
	return list
}
