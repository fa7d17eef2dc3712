//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"time"
)

var errLinux = errors.New("agents run on Linux only")

func (p *Process) start(context.Context, *Launcher, Spec, string) error { return errLinux }

func (p *Process) reap() ExitInfo { return ExitInfo{Code: -1} }

func (p *Process) terminate() {}

func (p *Process) sweep(time.Time) {}
