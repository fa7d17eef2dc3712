package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestLibrariesSpeakInALowVoice(t *testing.T) {
	var out bytes.Buffer
	l := library(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})), "etcd", new(atomic.Bool))
	z := zapLogger(l)
	z.Info("information", zap.Int("n", 1))
	z.Warn("warning")
	z.Error(harmless[0])
	l.Info("information")
	l.WithGroup("g").Warn("warning")
	if out.Len() > 0 {
		t.Errorf("said aloud:\n%s", out.String())
	}
	z.With(zap.String("member", "m")).Error("an error", zap.Error(errors.New("cause")), zap.Skip(), zap.Namespace("deep"), zap.Int("n", 7))
	for _, want := range []string{"level=ERROR", `msg="an error"`, "component=etcd", "member=m", "error=cause"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestNothingIsLostAtDebug(t *testing.T) {
	var out bytes.Buffer
	z := zapLogger(library(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug - 4})), "etcd", new(atomic.Bool)))
	z.Debug("one")
	z.Info("two")
	z.Warn("three")
	z.Error(harmless[0])
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
}

// TestStopIsNoError: what a library could not finish then was asked to end.
func TestStopIsNoError(t *testing.T) {
	var out bytes.Buffer
	var stopping atomic.Bool
	z := zapLogger(library(slog.New(slog.NewTextHandler(&out, nil)), "etcd", &stopping))
	stopping.Store(true)
	z.Error("context canceled")
	if out.Len() > 0 {
		t.Errorf("said aloud:\n%s", out.String())
	}
}

func TestFatalOfALibraryIsAPanic(t *testing.T) {
	for _, level := range []zapcore.Level{zapcore.PanicLevel, zapcore.FatalLevel} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", level)
				}
			}()
			zapLogger(slog.New(slog.DiscardHandler)).Log(level, "the end")
		}()
	}
}

// TestAuthenticationIsOn: without it every local user is administrator, and the
// server says so in one line.
func TestAuthenticationIsOn(t *testing.T) {
	sharedServer(t)
	text := shared.log.String()
	if !strings.Contains(text, "component=apiserver") || !strings.Contains(text, "component=etcd") {
		t.Fatal("the libraries log elsewhere")
	}
	if i := strings.Index(text, "is disabled"); i >= 0 {
		t.Errorf("%.200s", text[max(0, i-100):])
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "level=ERROR") {
			t.Error(line)
		}
	}
}
